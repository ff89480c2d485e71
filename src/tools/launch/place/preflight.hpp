// Finds limits of this system that make a start impossible, before anything is started.
#pragma once

#include <sys/resource.h>

#include <string>

namespace col::launch {

// The largest number of open files that supervising `ranks` ranks needs.
rlim_t open_files_needed(int ranks) noexcept;

// Throws LaunchError (125) if `ranks` ranks cannot be started on this node. `proc` is the path of procfs.
void preflight(int ranks, const std::string& proc = "/proc");

// The two parts of it.
void check_open_files(int ranks, rlim_t hard_limit);
void check_process_limit(int ranks, const std::string& proc = "/proc");

}  // namespace col::launch
