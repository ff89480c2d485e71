// Ways in which three ranks hang, as rows: what each does, what `coljob why` must say of it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <col/group.hpp>

#include "launch/report/why.hpp"

namespace col::colcheck {

// One thing that one rank does.
struct Deed {
  enum class Op : std::uint8_t {
    // Messages, with a tag. No channel takes a large one on trust.
    send,
    send_large,
    recv,
    recv_large,
    irecv,
    recv_any,
    sendrecv,
    // In a group; `calls`: so many times allreduce.
    barrier,
    split,
    dup,
    calls,
    // Rank 2 does not wait for them.
    start_allreduce,
    start_allgather,
    start_alltoall,
    // By SIGSTOP, now, or in the midst of its calls.
    stop,
    stop_later
  };
  int rank = 0;  // kEach: all
  Op op = Op::barrier;
  int peer = 0;  // kEach: the one that follows, or that is before; or how many calls
  int tag = 0;
  std::string_view group = {};  // of Hang::groups; empty: the world
};
constexpr int kEach = -1;

struct Team {
  std::string_view name;
  std::vector<int> ranks;
};

// Ranks that have done all are in their own code from then on.
struct Hang {
  std::string_view name;
  launch::Why::Cause cause;
  std::vector<int> culprits;  // empty: all ranks, however many they are
  std::string_view words;     // of coljob's sentence: a regular expression
  std::vector<Deed> deeds;    // in order
  std::vector<Team> groups = {};
};
std::span<const Hang> hangs();

// One rank's part in `hang`. Returns when it has done all. What it has in flight, and in memory of this kind, it keeps.
void do_part(const Hang& hang, Group& world, Device::Type device);

}  // namespace col::colcheck
