// An epoch of the job's group, as a rank tells its launcher: a line of COL_EPOCH_FILE. The lowest survivor of each host
// writes it when the epoch has opened. Ranks are called by their numbers in the job.
#pragma once

#include <cstdint>
#include <vector>

namespace col::core {

struct EpochLine {
  std::uint64_t epoch = 0;
  // Seconds, one after the other, from the call of renew() by the rank that writes: until the members were decided,
  // until it had connected to them, and until all had.
  double roll_call = 0, connect = 0, open = 0;
  std::vector<int> ranks = {};  // in the order of their numbers in the group
  std::vector<int> newcomers = {};
  std::vector<int> lost = {};      // they have ended
  std::vector<int> left_out = {};  // by the program, whether they live or not
};

template <class Visit>
void fields(EpochLine& line, Visit& visit) {
  auto& [epoch, roll_call, connect, open, ranks, newcomers, lost, left_out] = line;
  visit("epoch", epoch);
  visit("roll_call_seconds", roll_call);
  visit("connect_seconds", connect);
  visit("open_seconds", open);
  visit("ranks", ranks);
  visit("newcomers", newcomers);
  visit("lost", lost);
  visit("left_out", left_out);
}

}  // namespace col::core
