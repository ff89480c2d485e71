// The descriptors for supervising a job. Functions throw LaunchError (125) if the system has no more.
#pragma once

#include <sys/resource.h>

#include "common/unique_fd.hpp"

namespace col::launch {

// Raises this process's limit of open files as far as allowed, and returns the old limit.
rlimit raise_open_files();

struct PipeEnds {
  tools::UniqueFd read, write;
};
// The rank writes to one end; the other end is ours, and non-blocking. The pipe has the usual capacity: larger ones
// were not faster, and the system gives each user only a limited amount.
PipeEnds make_output_pipe();
// We write to one end without blocking, and a rank reads at the other.
PipeEnds make_input_pipe();

// Opens /dev/null for each of the descriptors 0 to 2 that is closed. Otherwise other files would get these numbers.
void ensure_standard_descriptors();

}  // namespace col::launch
