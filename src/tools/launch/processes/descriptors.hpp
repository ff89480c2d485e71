// The descriptors that supervising a job takes. Every function throws LaunchError (125) when the system has no more.
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "common/unique_fd.hpp"

namespace col::launch {

// Raises this process's limit of open files as far as it may; returns what it was. Throws when it is too low for
// `ranks` with so many files each (a pidfd, and what Output and Input take).
rlimit raise_open_files(int ranks, int files_per_rank);

tools::UniqueFd make_epoll();

// Adds `fd` to the epoll; its events carry `tag`.
void watch_readable(int epoll_fd, int fd, std::uint64_t tag);

struct PipeEnds {
  tools::UniqueFd read, write;
};
// What a rank writes goes in at one end; the other is ours, and non-blocking. Of the usual capacity: larger ones were
// not faster, and the system grants each user only so much.
PipeEnds make_output_pipe();
// What we write, without blocking, a rank reads at the other end.
PipeEnds make_input_pipe();

// Opens /dev/null as those of the descriptors 0 to 2 that are closed: otherwise other files would get these numbers.
void ensure_standard_descriptors();

}  // namespace col::launch
