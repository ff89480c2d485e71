// A random program over several groups: blocking calls, asynchronous ones and messages, many of them in flight at once.
// One rank stops in the middle of its own code. So all others wait in the end, for it or for a rank that waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <col/error.hpp>
#include <col/group.hpp>

namespace col::colcheck {

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

}  // namespace col::colcheck
