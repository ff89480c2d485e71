// Explains a state in which no rank can move: which rank waits for which.
#include <algorithm>

#include <fmt/format.h>

#include "plan/verify/machine.hpp"

namespace col::plan::symbolic {

// "waits to send input[0..3) to rank 4"
std::string Machine::wait_of(int rank, const Lane& lane) const {
  const Step& step = at(rank).next(lane);
  const Slice& slice = lane.receives ? step.to : step.left;
  return fmt::format("waits to {} {} {} rank {}", lane.receives ? "receive" : "send",
                     slice.empty() ? "a signal" : describe(slice), lane.receives ? "from" : "to", lane.peer);
}

const Machine::Lane* Machine::open_lane(int rank) const {
  const std::vector<Lane>& lanes = at(rank).lanes;
  const auto open = std::find_if(lanes.begin(), lanes.end(), [](const Lane& lane) { return lane.moved < lane.count; });
  return open == lanes.end() ? nullptr : &*open;
}

void Machine::report_deadlock() const {
  // A rank that has ended helps no other rank, and is the simplest explanation.
  for (int rank = 0; rank < problem_.size(); ++rank) {
    for (const Lane& lane : at(rank).lanes) {
      if (lane.moved < lane.count && at(lane.peer).has_ended())
        fail(rank, fmt::format("{}, which has ended", wait_of(rank, lane)));
    }
  }
  // Now every stuck rank waits for a stuck rank, so following the chain leads into a cycle.
  std::vector<int> seen_at(ranks_.size(), -1);
  std::vector<int> path;
  int rank = 0;
  while (at(rank).has_ended()) ++rank;
  while (seen_at[static_cast<std::size_t>(rank)] < 0) {
    seen_at[static_cast<std::size_t>(rank)] = static_cast<int>(path.size());
    path.push_back(rank);
    rank = open_lane(rank)->peer;
  }
  path.erase(path.begin(), path.begin() + seen_at[static_cast<std::size_t>(rank)]);
  constexpr std::size_t kMostShown = 6;
  std::string text = fmt::format("deadlock: it {}", wait_of(path[0], *open_lane(path[0])));
  for (std::size_t i = 1; i < std::min(path.size(), kMostShown); ++i)
    text += fmt::format("; rank {} in round {} {}", path[i], at(path[i]).index, wait_of(path[i], *open_lane(path[i])));
  if (path.size() > kMostShown) text += fmt::format("; and so on, {} ranks in a cycle", path.size());
  fail(path[0], std::move(text));
}

}  // namespace col::plan::symbolic
