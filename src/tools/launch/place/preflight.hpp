// Limits of this system that make a start impossible, found before anything is started.
#pragma once

#include <sys/resource.h>

#include <string>

namespace col::launch {

// Open files that supervising `ranks` ranks takes at most.
rlim_t open_files_needed(int ranks) noexcept;

// Throws LaunchError (125) when `ranks` ranks cannot be started on this node. `proc` is where procfs is.
void preflight(int ranks, const std::string& proc = "/proc");

// The two parts of it.
void check_open_files(int ranks, rlim_t hard_limit);
void check_process_limit(int ranks, const std::string& proc = "/proc");

}  // namespace col::launch
