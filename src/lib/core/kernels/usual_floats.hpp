// A scope in which floats are rounded to the nearest, and denormals count: as long as it lives, whatever this thread
// has set. A reduction whose bits depend on its contributions alone (Order::tree) computes in one, because different
// threads may compute its parts: the user's, which may have set these, and col's own.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace col::core {

// Requires: `applies` is the same until the end. Without it, nothing is read or set.
class UsualFloats {
 public:
  explicit UsualFloats(bool applies) noexcept : before_(applies ? read() : 0) {
    if ((before_ & kUnusual) != 0) write(before_ & ~kUnusual);
  }
  ~UsualFloats() {
    if ((before_ & kUnusual) != 0) write(before_);
  }
  UsualFloats(const UsualFloats&) = delete;
  UsualFloats& operator=(const UsualFloats&) = delete;

 private:
#if defined(__x86_64__)
  using Word = std::uint32_t;
  static constexpr Word kUnusual = 0x8000 | 0x6000 | 0x0040;  // results flushed, another rounding, operands flushed
  static Word read() noexcept {
    return _mm_getcsr();
  }
  static void write(Word word) noexcept {
    _mm_setcsr(word);
  }
#elif defined(__aarch64__)
  using Word = std::uint64_t;
  static constexpr Word kUnusual = Word{0x1} << 24 | Word{0x3} << 22 | Word{0x1} << 19;  // flushed, rounding, halves
  static Word read() noexcept {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void write(Word word) noexcept {
    asm volatile("msr fpcr, %0" : : "r"(word));
  }
#else
  using Word = std::uint32_t;
  static constexpr Word kUnusual = 0;
  static Word read() noexcept {
    return 0;
  }
  static void write(Word) noexcept {}
#endif

  const Word before_;
};

}  // namespace col::core
