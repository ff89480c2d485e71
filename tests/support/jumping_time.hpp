// Time that jumps to the end of every wait for which nothing is ready, so that a test of a time limit takes none.
#pragma once

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <stdexcept>

#include "support/same_process.hpp"

namespace col::test {

// Stands in for the kernel as long as it lives, for the whole process. Requires: one thread.
class JumpingTime final : public SameProcess {
 public:
  JumpingTime() { core::installed_scheduler = this; }
  ~JumpingTime() override { core::installed_scheduler = nullptr; }
  JumpingTime(const JumpingTime&) = delete;
  JumpingTime& operator=(const JumpingTime&) = delete;

  Time now() noexcept override { return now_; }
  std::chrono::system_clock::time_point wall_now() noexcept override {
    return std::chrono::system_clock::time_point(now_.time_since_epoch());
  }
  void yield() noexcept override { ::sched_yield(); }
  void block(const void* /*address*/, Time until) noexcept override { jump(until); }
  void wake(const void* /*address*/, bool /*all*/) noexcept override {}
  int poll(std::span<pollfd> descriptors, Time until) noexcept override {
    const int ready = ::poll(descriptors.data(), descriptors.size(), 0);
    if (ready == 0) jump(until);
    return ready;
  }
  int start_thread(std::function<void()> /*body*/) override { throw std::logic_error("time jumps for one thread"); }
  void join_thread(int /*number*/) noexcept override {}

 private:
  void jump(Time until) noexcept { now_ = std::max(now_, until); }

  Time now_ = Time(std::chrono::hours(1));
};

}  // namespace col::test
