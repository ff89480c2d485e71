// Whether a process that died of SIGKILL was killed by the kernel, for want of memory.
//
// The kernel says to nobody which process it killed but counts the kills, for each control group and for the machine.
// The count of this process's own group is the one that tells, as ranks are in it too; a group around it, and then the
// machine, stands in where that one cannot be read. Such a count may grow by processes of others.
#pragma once

#include <cstdint>
#include <string>

namespace col::launch {

class OutOfMemoryWatch {
 public:
  // Where the kernel shows the counts. Other values than these are for tests.
  struct Places {
    std::string own = "/proc/self/cgroup";
    std::string root = "/sys/fs/cgroup";
    std::string machine = "/proc/vmstat";
  };

  // Kills from now on count. Never fails: where nothing can be read there are no kills.
  OutOfMemoryWatch() : OutOfMemoryWatch(Places()) {}
  explicit OutOfMemoryWatch(const Places& places);

  // True when there was a kill that was not claimed yet, and claims it. To be asked when a process was found dead of a
  // SIGKILL that is not ours, once for each: the kernel counts before it kills.
  bool claim();
  // Kills that were not claimed yet.
  std::uint64_t unclaimed() const;

 private:
  std::string file_;           // that has the count; empty: none can be read
  std::uint64_t claimed_ = 0;  // the count up to which all is claimed
};

}  // namespace col::launch
