// Both clocks of a trace at one moment.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/trace/clock.hpp"
#include "core/trace/layout.hpp"

namespace col::core {

struct ClockMoment {
  std::uint64_t ticks = 0, ns = 0;

  // A process that is suspended between the two readings would be wrong by that time: the quickest of a few tries
  // counts.
  static ClockMoment now(bool by_counter) noexcept {
    ClockMoment best;
    std::uint64_t least = ~std::uint64_t{0};
    for (int attempt = 0; attempt < 8; ++attempt) {
      const std::uint64_t before = TraceClock::ticks(by_counter), ns = monotonic_ns();
      const std::uint64_t passed = TraceClock::ticks(by_counter) - before;
      if (passed >= least) continue;
      least = passed;
      best = {before + passed / 2, ns};
    }
    return best;
  }

  void store_in(ClockPair& pair) const noexcept {
    pair.ticks.store(ticks, std::memory_order_relaxed);
    pair.ns.store(ns, std::memory_order_relaxed);
  }
};

}  // namespace col::core
