// The time of events, by the processor's own counter where it is one for all processors and never changes its rate: it
// is read in a third of the time of the system's clock.
#pragma once

#include <cstdint>

#include "core/clock/clock.hpp"

namespace col::core {

class TraceClock {
 public:
  // Whether ticks() is that counter; else it is nanoseconds. The kernel is asked: it uses the counter itself only where
  // it is good.
  static bool is_counter() noexcept;

  static std::uint64_t ticks(bool by_counter) noexcept {
#if defined(__x86_64__)
    if (by_counter) return __builtin_ia32_rdtsc();
#endif
    static_cast<void>(by_counter);
    return clock_ns();
  }
};

}  // namespace col::core
