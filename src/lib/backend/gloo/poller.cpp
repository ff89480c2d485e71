#include "backend/gloo/poller.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <col/error.hpp>

#include "core/clock/clock.hpp"

namespace col::gloo_backend {
namespace {

int checked(int result, const char* what) {
  if (result >= 0) return result;
  const int error = errno;
  const bool is_full = error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOSPC;
  throw Error(is_full ? ErrorCode::resource : ErrorCode::io,
              fmt::format("gloo: {}: {}{}", what, std::strerror(error),
                          error == EMFILE ? "; raise the limit of open files (ulimit -n)" : ""));
}

epoll_event interest(std::uint64_t id) noexcept {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = id;
  return event;
}

}  // namespace

Poller::Poller()
    : epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_(checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")),
      alarm_(checked(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create")) {
  // Neither is ever read: each write and each expiry is an edge of its own.
  for (const auto& [fd, target] : {std::pair(wake_.get(), Target::nobody), std::pair(alarm_.get(), Target::alarm)}) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = event_id(target);
    checked(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  }
}

void Poller::watch(int fd, std::uint64_t id) {
  epoll_event event = interest(id);
  checked(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

void Poller::rewatch(int fd, std::uint64_t id) noexcept {
  epoll_event event = interest(id);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::unwatch(int fd) noexcept {
  epoll_event unused{};
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, &unused);
}

int Poller::wait(std::span<epoll_event> events, Duration timeout) noexcept {
  return std::max(0, core::epoll_for(epoll_.get(), events, timeout));
}

void Poller::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void Poller::set_alarm(Duration after) noexcept {
  const auto ns = std::max<std::int64_t>(1, std::chrono::nanoseconds(after).count());
  itimerspec spec{};
  spec.it_value.tv_sec = ns / 1'000'000'000;
  spec.it_value.tv_nsec = ns % 1'000'000'000;
  timerfd_settime(alarm_.get(), 0, &spec, nullptr);
}

}  // namespace col::gloo_backend
