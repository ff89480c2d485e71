#include "net/poller.hpp"

#include <algorithm>
#include <chrono>

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace col::net {
namespace {

core::UniqueFd checked(int fd, const char* what, Poller::Fail fail) {
  if (fd < 0) fail(what);
  return core::UniqueFd(fd);
}

}  // namespace

Poller::Poller(Fail fail, bool has_alarm)
    : fail_(fail),
      epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "make an epoll instance", fail)),
      wake_(checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "make an event", fail)) {
  // Neither is ever read: each write and each expiry is an edge of its own.
  watch(wake_.get(), kWoken, EPOLLIN | EPOLLET);
  if (!has_alarm) return;
  alarm_ = checked(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "make an alarm", fail);
  watch(alarm_.get(), kAlarm, EPOLLIN | EPOLLET);
}

void Poller::watch(int fd, std::uint64_t id, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) fail_("watch a descriptor");
}

bool Poller::rewatch(int fd, std::uint64_t id, std::uint32_t events) noexcept {
  epoll_event event{.events = events, .data = {.u64 = id}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

void Poller::unwatch(int fd) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

// The kernel's timers know nothing of simulated time.
int Poller::wait(std::span<epoll_event> events, Duration timeout) noexcept {
  const bool is_simulated = core::scheduler() != nullptr && simulated_alarm_ != core::Clock::time_point::max();
  if (is_simulated) timeout = std::min<Duration>(timeout, simulated_alarm_ - core::Clock::now());
  int count = std::max(0, core::epoll_for(epoll_.get(), events, timeout));
  if (is_simulated && static_cast<std::size_t>(count) < events.size() && simulated_alarm_ <= core::Clock::now()) {
    simulated_alarm_ = core::Clock::time_point::max();
    events[static_cast<std::size_t>(count++)] = {.events = EPOLLIN, .data = {.u64 = kAlarm}};
  }
  return count;
}

void Poller::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Poller::set_alarm(Duration after) noexcept {
  if (core::scheduler() != nullptr) {
    simulated_alarm_ = core::Clock::now() + after;
    return;
  }
  const auto ns = std::max<std::int64_t>(1, std::chrono::nanoseconds(after).count());
  const itimerspec spec{.it_interval = {}, .it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000}};
  ::timerfd_settime(alarm_.get(), 0, &spec, nullptr);
}

}  // namespace col::net
