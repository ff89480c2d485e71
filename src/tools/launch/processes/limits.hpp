// This host's limits of open files and processes. A job starts whole or not at all, so they are looked at before
// anything is started.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>

namespace col::launch {

// The needs of a job (inspect.hpp).
struct Needs {
  int ranks = 1;            // of this node
  int hosts = 0;            // that this launcher starts over ssh
  rlim_t files = 0;         // open at a time in one process of the launcher, at the most
  rlim_t files_of_all = 0;  // the same on each of the hosts
  long long processes = 0;  // besides this one; each thread is one
};

// For this process.
rlimit limit_of(decltype(RLIMIT_NPROC) resource);

// Both throw LaunchError (125), with a number that suffices, if this limit is too low: that of open files, and those of
// processes, of this user (RLIMIT_NPROC) and of the control groups. `proc` is the path of procfs; what cannot be found
// there is no limit.
void check_open_files(const Needs& needs, rlim_t hard_limit = limit_of(RLIMIT_NOFILE).rlim_max);
void check_processes(const Needs& needs, rlim_t limit = limit_of(RLIMIT_NPROC).rlim_cur,
                     const std::string& proc = "/proc");

// A fork failed with this errno, while `missing` processes were to be started: which limit has been reached, and what
// would suffice.
std::string why_no_process(int error, int missing, rlim_t limit = limit_of(RLIMIT_NPROC).rlim_cur,
                           const std::string& proc = "/proc");

// Finds out whether the kernel killed a process, which died of SIGKILL, for lack of memory.
//
// The kernel does not say which process it killed. It only counts the kills, for each control group and for the
// machine. The count of this process's own group is the right one, because ranks are in this group too. If it cannot be
// read, the count of a group around it is used, and then that of the machine. These counts may grow because of other
// processes.
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
