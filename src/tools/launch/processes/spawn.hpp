// Starting one rank.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <span>

#include "launch/place/binding.hpp"

namespace col::launch {

// What become the child's descriptors 0, 1 and 2.
struct ChildDescriptors {
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool controlling_terminal = false;  // stdout_fd is a terminal that becomes the child's own
};

// All that the child needs, made before it exists: between its birth and exec it may only make system calls.
struct ChildPlan {
  const char* path;
  char* const* arguments;
  char* const* environment;
  ChildDescriptors descriptors;
  std::span<const int> keep_fds;  // sorted; everything else above 2 is closed
  rlimit open_files;              // the limit that the launcher itself was started with
  std::span<const int>
      changed_signals;            // get their default action back; found once, not anew for each of many children
  const CpuMask* cpus = nullptr;  // null: as the launcher's
};

struct SpawnResult {
  pid_t pid = -1;      // -1: nothing was started
  int fork_error = 0;  // errno of the fork
  int exec_error = 0;  // errno of the exec: the child is gone and reaped
};

// Starts the child in a process group of its own (a session, with a terminal of its own), with default signal actions
// and an empty mask. It is killed when the calling thread ends. Returns when the program has been entered, or could not
// be.
//
// Requires: signals that have handlers are blocked, and are among `changed_signals` (the child borrows our memory until
// exec).
SpawnResult spawn(const ChildPlan& plan);

}  // namespace col::launch
