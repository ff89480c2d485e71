// What the threads of a rank wait for: one epoll descriptor, with an alarm and a way to wake whoever waits.
//
// Edge-triggered, so that of two threads that wait, an event wakes only one: the one that came last. That is the
// thread of a call that waits, while the event thread sleeps on. So whoever gets an event has to handle it to its end,
// or ask for it again (rewatch).
#pragma once

#include <cstdint>
#include <span>

#include <sys/epoll.h>

#include <col/types.hpp>

#include "core/unique_fd.hpp"

namespace col::gloo_backend {

// Who an event is for.
enum class Target : std::uint32_t { nobody, alarm, listener, caller, call, connection };
constexpr std::uint64_t event_id(Target target, std::uint32_t number = 0) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(target)} << 32 | number;
}
constexpr Target target_of(std::uint64_t id) noexcept {
  return static_cast<Target>(id >> 32);
}
constexpr std::uint32_t number_of(std::uint64_t id) noexcept {
  return static_cast<std::uint32_t>(id);
}

class Poller {
 public:
  static constexpr int kDescriptors = 3;

  Poller();                              // throws Error: resource if the process has no descriptors left
  void watch(int fd, std::uint64_t id);  // throws Error
  // The same for a descriptor that is watched. An event that has been reported already is reported again.
  void rewatch(int fd, std::uint64_t id) noexcept;
  // To close a descriptor is not enough where a forked process has a copy of it.
  void unwatch(int fd) noexcept;
  // How many events there are.
  int wait(std::span<epoll_event> events, Duration timeout) noexcept;
  // Ends one wait(), the present one or the next. Any thread may call it.
  void wake() noexcept;
  void set_alarm(Duration after) noexcept;  // in place of the one before

 private:
  core::UniqueFd epoll_, wake_, alarm_;
};

}  // namespace col::gloo_backend
