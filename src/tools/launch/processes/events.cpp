#include "launch/processes/events.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "common/exit_codes.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;
using tools::exit_code::kLauncher;

PipeEnds make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw LaunchError(kLauncher, "cannot create a pipe: {}; use fewer ranks", strerror(errno));
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Events::Events() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw LaunchError(kLauncher, "cannot create an epoll descriptor: {}", strerror(errno));
}

void Events::serve(Duration at_most) {
  std::array<epoll_event, 256> room;
  for (const epoll_event& event : next_events(fd(), room, at_most)) {
    const auto found = sources_.find(static_cast<std::uint32_t>(event.data.u64 >> 32));
    if (found != sources_.end()) found->second->handler_(event.data.u64 & 0xffff'ffff);
  }
}

EventSource::EventSource(Events& events, Handler handler)
    : events_(events), handler_(std::move(handler)), number_(events.next_++) {
  events_.sources_.emplace(number_, this);
}

EventSource::~EventSource() {
  events_.sources_.erase(number_);
}

bool EventSource::add(int fd, std::uint32_t what, std::size_t index) noexcept {
  epoll_event event{};
  event.events = what;
  event.data.u64 = std::uint64_t{number_} << 32 | index;
  return ::epoll_ctl(events_.fd(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void EventSource::add_readable(int fd, std::size_t index) {
  if (!add(fd, EPOLLIN, index)) throw LaunchError(kLauncher, "cannot watch a descriptor: {}", strerror(errno));
}

void EventSource::remove(int fd) noexcept {
  ::epoll_ctl(events_.fd(), EPOLL_CTL_DEL, fd, nullptr);
}

std::span<const epoll_event> next_events(int epoll_fd, std::span<epoll_event> room, Duration at_most) noexcept {
  const auto take = [&] { return ::epoll_wait(epoll_fd, room.data(), static_cast<int>(room.size()), 0); };
  int count = take();
  // A busy epoll costs one system call.
  pollfd any{epoll_fd, POLLIN, 0};
  if (count == 0 && at_most > Duration::zero() && core::poll_for({&any, 1}, at_most) > 0) count = take();
  return room.first(static_cast<std::size_t>(std::max(count, 0)));
}

rlimit raise_open_files() {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit raised{before.rlim_max, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  return before;
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
