// Finds the program to run, and starts it as a rank.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "launch/place/placement.hpp"

namespace col::launch {

// The path of `name`: `name` itself if it contains a slash, else the first executable file of that name in PATH. Throws
// LaunchError: 127 if there is none, 126 if there is one that cannot be executed.
std::string resolve_program(const std::string& name);

// Throws LaunchError (126) for a program that was found but that exec refused with `error`.
[[noreturn]] void refuse_program(const std::string& path, int error);

// The files that become the child's descriptors 0, 1 and 2.
struct ChildDescriptors {
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool controlling_terminal = false;  // stdout_fd is a terminal that becomes the child's controlling terminal
};

// Everything that the child needs. It is made before the child exists: between its start and exec, the child may only
// make system calls.
struct ChildPlan {
  const char* path;
  char* const* arguments;
  char* const* environment;
  ChildDescriptors descriptors;
  std::span<const int> keep_fds;  // sorted; all other descriptors above 2 are closed
  int pmi_fd = -1;                // one of them that is marked to be closed at exec, and stays open
  rlimit open_files;              // the limit with which the launcher itself was started
  std::span<const int>
      changed_signals;            // get their default action back; found once, not anew for each of many children
  const CpuMask* cpus = nullptr;  // null: as for the launcher
  bool core_dumps = true;         // false: it writes none, whatever the launcher's limit is
};

// The texts as execve takes them: null-terminated. Valid as long as `texts` is unchanged.
std::vector<char*> pointers_to(std::vector<std::string>& texts);

struct SpawnResult {
  pid_t pid = -1;      // -1: nothing was started
  int fork_error = 0;  // errno of the fork
  int exec_error = 0;  // errno of the exec: the child has ended and was reaped
};

// Starts the child in its own process group (its own session, if it has its own terminal), with default signal actions
// and an empty mask. The child is killed when the calling thread ends. Returns when the program has started, or could
// not be started.
//
// Requires: signals with handlers are blocked, and are in `changed_signals` (the child uses our memory until exec).
SpawnResult spawn(const ChildPlan& plan);

}  // namespace col::launch
