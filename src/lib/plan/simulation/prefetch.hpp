#pragma once

namespace col::plan::simulation {

// It will be needed soon. The asm is empty: without it, GCC 12 takes a function that does nothing but this for one that
// has no effect, and leaves its calls out.
inline void prefetch(const void* address) noexcept {
  __builtin_prefetch(address, 1);
  asm volatile("");
}

}  // namespace col::plan::simulation
