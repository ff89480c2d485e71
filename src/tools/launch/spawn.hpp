// Starting one rank.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <span>

namespace col::launch {

// All that the child needs, made before it exists: between its birth and exec it may only make system calls.
struct ChildPlan {
  const char* path;
  char* const* arguments;
  char* const* environment;
  int stdin_fd, stdout_fd, stderr_fd;  // become 0, 1 and 2
  std::span<const int> keep_fds;       // sorted; everything else above 2 is closed
  rlimit open_files;                   // the limit that the launcher itself was started with
  bool ignore_hangup;
};

struct SpawnResult {
  pid_t pid = -1;      // -1: nothing was started
  int fork_error = 0;  // errno of the fork
  int exec_error = 0;  // errno of the exec: the child is gone and reaped
};

// Starts the child in a process group of its own, with default signal actions and an empty mask. It is killed when the
// calling thread ends. Returns when the program has been entered, or could not be.
//
// Requires: signals that have handlers are blocked (the child borrows our memory until exec).
SpawnResult spawn(const ChildPlan& plan);

}  // namespace col::launch
