// What the ranks do in drills that need more than a call: hung.cpp, late_copy.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <col/error.hpp>
#include <col/group.hpp>

#include "colcheck/engine/case.hpp"

namespace col::colcheck {

// A random program over several groups: blocking calls, asynchronous ones and messages, many of them in flight at once.
// One rank stops in the middle of its own code. So all others wait in the end, for it or for a rank that waits for it.
class Tangle {
 public:
  // Makes the groups; collective over `world`. Ranks that pass the same seed have the same program. `timeout` is that
  // of its calls.
  Tangle(Group world, std::uint64_t seed, Duration timeout);

  // Runs this rank's part. The rank that the seed chooses calls `hang` instead of one of its steps, which is drawn too.
  // Throws what the calls throw.
  void run(const std::function<void()>& hang);

  static int victim(std::uint64_t seed, int ranks);

 private:
  struct Team {
    std::vector<int> ranks;  // of the world
    Group group;             // false on ranks that are not in it
  };
  struct Step;
  std::vector<Step> steps() const;
  void run(const Step& step, std::vector<Work>& works);

  std::vector<Team> teams_;  // the world is the first
  std::uint64_t seed_;
  Duration timeout_;
  std::vector<std::vector<std::int32_t>> buffers_ = {};  // of all calls; their memory stays in place
};

// Delays a rank while the kernel copies another rank's memory for it (process_vm_readv), by a filter of system calls
// that asks first; and what the other ranks do with their memory meanwhile.
//
// It is one rank's part in such a call: a broadcast, scatter, allgather or alltoall of int32, on this group. `say`
// reports that this rank has come to a point, and returns when it may go on. The rank that `copies` says "copying" in
// the middle of its first copy. The others say "overwritten" when their call has failed and they have written into
// their buffers. Throws what the call throws. Returns what is wrong with the data, or that no system call can be held
// here, or "". Requires: called once in this process, because the filter stays.
std::string call_held(Group& group, const Case& c, bool copies, const std::function<void(const std::string&)>& say);

}  // namespace col::colcheck
