// This host's limits of open files and processes. A job starts whole or not at all, so they are looked at before
// anything is started.
#pragma once

#include <sys/resource.h>

#include <string>

namespace col::launch {

// The needs of a job.
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

}  // namespace col::launch
