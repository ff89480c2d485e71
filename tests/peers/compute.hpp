// Work of the processor that needs no memory but the nearest cache: what a program does while a call is under way.
#pragma once

#include <array>
#include <cstdint>

namespace contest {

class Compute {
 public:
  // One copy of it for all who call it: inlined, the same work took up to a third longer in some places.
  [[gnu::noinline]] void run(std::int64_t units) {
    for (std::int64_t unit = 0; unit < units; ++unit) {
      for (float& value : values_) value = value * 0.5f + 1.0f;
      // Each unit counts: the compiler may not see that nobody looks at the values.
      asm volatile("" : : "r"(values_.data()) : "memory");
    }
  }

 private:
  alignas(64) std::array<float, 1024> values_{};
};

}  // namespace contest
