// How a rank that waits makes way for others, as long as that pays.
//
// Where nobody else wants the processor, a yield returns at once, and who polls between yields sees what it waits for
// sooner than who sleeps. Where another process computes there, each yield gives it a slice of the scheduler's,
// some milliseconds, which count as used by who has yielded; who sleeps instead is waked when it is needed. So after a
// yield that took long, ranks sleep for a while instead.
#pragma once

#include <chrono>

#include "core/clock/clock.hpp"

namespace col::shm_backend {

class Yielding {
 public:
  // Where there are more ranks than processors, the awaited rank may itself wait for this one's: then yields always
  // pay. So it is until this is called.
  void set_crowded(bool crowded) noexcept { crowded_ = crowded; }

  // Lets others run. Returns false if the rank had better sleep now.
  bool yield() noexcept {
    if (crowded_) {
      core::yield();
      return true;
    }
    const auto before = core::Clock::now();
    if (before < sleeps_until_) return false;
    core::yield();
    const auto after = core::Clock::now();
    if (after - before < kLong) return true;
    sleeps_until_ = after + kWhile;
    return false;
  }

  // No rank that also waits keeps the processor for so long, and no slice of the scheduler's is shorter.
  static constexpr Duration kLong = std::chrono::microseconds(500);
  // Then it is tried again: as much as some slices, so that a yield in vain costs little.
  static constexpr Duration kWhile = std::chrono::milliseconds(50);

 private:
  using Time = core::Clock::time_point;

  bool crowded_ = true;
  Time sleeps_until_ = Time::min();
};

}  // namespace col::shm_backend
