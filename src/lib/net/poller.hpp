// What one thread, or several, wait for: one epoll descriptor, with an alarm and a way to wake whoever waits.
//
// An event of kEdges wakes only one of two threads that wait: the one that came last. So whoever gets it has to handle
// it to its end, or ask for it again (rewatch).
#pragma once

#include <cstdint>
#include <span>

#include <sys/epoll.h>

#include <col/types.hpp>

#include "core/clock/clock.hpp"
#include "core/export/module_export.hpp"
#include "core/unique_fd.hpp"

namespace col::net {

class COL_MODULE_EXPORT Poller {
 public:
  // Throws, by errno: `what` could not be done.
  using Fail = void (*)(const char* what);
  static constexpr int kDescriptors = 3;  // with an alarm; else one fewer
  // What events are known by; callers have all other numbers.
  static constexpr std::uint64_t kWoken = ~std::uint64_t{0}, kAlarm = kWoken - 1;
  static constexpr std::uint32_t kEdges = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

  explicit Poller(Fail fail, bool has_alarm = false);

  void watch(int fd, std::uint64_t id, std::uint32_t events = kEdges);  // calls `fail`
  // The same for a descriptor that is watched. An edge that has been reported already is reported again. Returns
  // whether it could be done.
  bool rewatch(int fd, std::uint64_t id, std::uint32_t events = kEdges) noexcept;
  // To close a descriptor is not enough where a forked process has a copy of it.
  void unwatch(int fd) noexcept;
  // How many events there are.
  int wait(std::span<epoll_event> events, Duration timeout) noexcept;
  // Ends one wait(), the present one or the next. Any thread may call it.
  void wake() noexcept;
  void set_alarm(Duration after) noexcept;  // in place of the one before

 private:
  const Fail fail_;
  core::UniqueFd epoll_, wake_, alarm_;
  core::Clock::time_point simulated_alarm_ = core::Clock::time_point::max();
};

}  // namespace col::net
