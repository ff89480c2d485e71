#include "launch/processes/descriptors.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {

using tools::UniqueFd;
using tools::exit_code::kLauncher;

namespace {

PipeEnds make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw LaunchError(kLauncher, "cannot create a pipe: {}; use fewer ranks", strerror(errno));
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

rlimit raise_open_files() {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit raised{before.rlim_max, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

UniqueFd make_epoll() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) throw LaunchError(kLauncher, "cannot create an epoll descriptor: {}", strerror(errno));
  return epoll;
}

bool watch(int epoll_fd, int fd, std::uint32_t events, std::uint64_t tag) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  return ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

void watch_readable(int epoll_fd, int fd, std::uint64_t tag) {
  if (!watch(epoll_fd, fd, EPOLLIN, tag))
    throw LaunchError(kLauncher, "cannot watch a descriptor: {}", strerror(errno));
}

std::span<const epoll_event> next_events(int epoll_fd, std::span<epoll_event> room, Duration at_most) noexcept {
  const auto take = [&] { return ::epoll_wait(epoll_fd, room.data(), static_cast<int>(room.size()), 0); };
  int count = take();
  // A busy epoll costs one system call.
  pollfd any{epoll_fd, POLLIN, 0};
  if (count == 0 && at_most > Duration::zero() && core::poll_for({&any, 1}, at_most) > 0) count = take();
  return room.first(static_cast<std::size_t>(std::max(count, 0)));
}

PipeEnds make_output_pipe() {
  PipeEnds pipe = make_pipe();
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

PipeEnds make_input_pipe() {
  PipeEnds pipe = make_pipe();
  ::fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

void ensure_standard_descriptors() {
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd > STDERR_FILENO) ::close(fd);
  for (int standard = 0; standard <= STDERR_FILENO; ++standard) {
    const int flags = ::fcntl(standard, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) != 0) ::fcntl(standard, F_SETFD, flags & ~FD_CLOEXEC);
  }
}

}  // namespace col::launch
