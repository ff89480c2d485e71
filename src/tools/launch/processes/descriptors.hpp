// The descriptors for supervising a job. Functions throw LaunchError (125) if the system has no more.
#pragma once

#include <sys/epoll.h>
#include <sys/resource.h>

#include <cstdint>
#include <span>

#include <col/types.hpp>

#include "common/unique_fd.hpp"

namespace col::launch {

// Raises this process's limit of open files as far as allowed, and returns the old limit.
rlimit raise_open_files();

tools::UniqueFd make_epoll();

// Adds `fd` to the epoll, for these events (EPOLLIN and so on), which carry `tag`. Returns false, and sets errno, if
// the system refuses it.
bool watch(int epoll_fd, int fd, std::uint32_t events, std::uint64_t tag) noexcept;
// The same for EPOLLIN. Throws if the system refuses it.
void watch_readable(int epoll_fd, int fd, std::uint64_t tag);
// Takes what has happened, in that order; if that is nothing yet, waits for it. Empty after `at_most`, or for no
// reason.
std::span<const epoll_event> next_events(int epoll_fd, std::span<epoll_event> room, Duration at_most) noexcept;

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
