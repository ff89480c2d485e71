// Finds out whether the kernel killed a process, which died of SIGKILL, for lack of memory.
//
// The kernel does not say which process it killed. It only counts the kills, for each control group and for the
// machine. The count of this process's own group is the right one, because ranks are in this group too. If it cannot be
// read, the count of a group around it is used, and then that of the machine. These counts may grow because of other
// processes.
#pragma once

#include <cstdint>
#include <string>

namespace col::launch {

class OutOfMemoryWatch {
 public:
  // Counts kills from now on. Never fails: if nothing can be read, there are no kills. `proc` is the path of procfs.
  explicit OutOfMemoryWatch(const std::string& proc = "/proc");

  // Returns true if there was a kill that was not claimed yet, and claims it. Call it once for each process that died
  // of a SIGKILL that is not ours. The kernel counts before it kills.
  bool claim();
  // The number of kills that were not claimed yet.
  std::uint64_t unclaimed() const;

 private:
  std::string file_;           // the file with the count; empty: none can be read
  std::uint64_t claimed_ = 0;  // all kills up to this count are claimed
};

}  // namespace col::launch
