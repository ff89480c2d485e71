// The descriptors that supervising a job takes. Every function throws LaunchError (125) when the system has no more.
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "common/unique_fd.hpp"

namespace col::launch {

// Raises this process's limit of open files as far as it may; returns what it was. Throws when it is too low for
// `ranks`.
rlimit raise_open_files(int ranks);

tools::UniqueFd make_epoll();

// Adds `fd` to the epoll; its events carry `tag`.
void watch_readable(int epoll_fd, int fd, std::uint64_t tag);

// What a rank writes goes in at one end; the other is ours, and non-blocking.
struct OutputPipe {
  tools::UniqueFd read, write;
};
OutputPipe make_output_pipe();

// Opens /dev/null as those of the descriptors 0 to 2 that are closed: otherwise other files would get these numbers.
void ensure_standard_descriptors();

}  // namespace col::launch
