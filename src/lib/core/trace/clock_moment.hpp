// The clocks of a trace at one moment.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/trace/clock.hpp"
#include "core/trace/layout.hpp"

namespace col::core {

// What two clocks say at one moment. A process that is suspended between the readings would be wrong by that time: the
// quickest of a few tries counts.
template <class First, class Second>
std::pair<std::uint64_t, std::uint64_t> at_one_moment(const First& first, const Second& second) noexcept {
  std::pair<std::uint64_t, std::uint64_t> best;
  std::uint64_t least = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::uint64_t before = first(), other = second();
    const std::uint64_t passed = first() - before;
    if (passed >= least) continue;
    least = passed;
    best = {before + passed / 2, other};
  }
  return best;
}

// By how much the clock of the day is ahead of the monotonic one.
inline std::uint64_t real_minus_monotonic_ns() noexcept {
  const auto real_ns = [] {
    const auto now = wall_now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
  };
  const auto [monotonic, real] = at_one_moment(clock_ns, real_ns);
  return real - monotonic;
}

struct ClockMoment {
  std::uint64_t ticks = 0, ns = 0;

  static ClockMoment now(bool by_counter) noexcept {
    const auto [ticks, ns] = at_one_moment([by_counter] { return TraceClock::ticks(by_counter); }, clock_ns);
    return {ticks, ns};
  }

  void store_in(ClockPair& pair) const noexcept {
    pair.ticks.store(ticks, std::memory_order_relaxed);
    pair.ns.store(ns, std::memory_order_relaxed);
  }
};

}  // namespace col::core
