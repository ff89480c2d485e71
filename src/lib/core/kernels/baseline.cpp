// The kernels for every processor of this architecture: 16-byte vectors (SSE2 on x86-64, NEON on arm64).
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <cstddef>
#include <cstring>

#include "core/kernels/make_table.hpp"

namespace col::core {
namespace {

struct Baseline {
  static constexpr std::size_t kVectorBytes = 16;
  // Of 16 registers. With 8 of them gcc 12 keeps some in memory, since a load of its own precedes every operation.
  static constexpr std::size_t kAccumulators = 6;
  static constexpr bool kConvertsFloat16 = false;

  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Words<kBytes> to_words(Halves<kBytes> halves) {
    return __builtin_convertvector(halves, Words<kBytes>);
  }
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Halves<kBytes> to_halves(Words<kBytes> words) {
    return __builtin_convertvector(words, Halves<kBytes>);
  }
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Words<kBytes> to_words(Quarters<kBytes> quarters) {
    return __builtin_convertvector(quarters, Words<kBytes>);
  }
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Quarters<kBytes> to_quarters(Words<kBytes> words) {
    return __builtin_convertvector(words, Quarters<kBytes>);
  }

  // As combine_in_order() says.
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Floats<kBytes> sum(Floats<kBytes> left, Floats<kBytes> right) {
#if defined(__x86_64__)
    asm("addps %1, %0" : "+x"(left) : "x"(right));
    return left;
#else
    return left + right;
#endif
  }
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Floats<kBytes> product(Floats<kBytes> left, Floats<kBytes> right) {
#if defined(__x86_64__)
    asm("mulps %1, %0" : "+x"(left) : "x"(right));
    return left;
#else
    return left * right;
#endif
  }

#if defined(__x86_64__)
  template <class Stored>
  [[gnu::always_inline]] static inline void stream(std::byte* to, Stored value) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), as<__m128i>(value));
  }
  static void fence() {
    _mm_sfence();
  }
#else
  // No store past the caches that a compiler offers for every processor.
  template <class Stored>
  [[gnu::always_inline]] static inline void stream(std::byte* to, Stored value) {
    std::memcpy(to, &value, sizeof(value));
  }
  static void fence() {}
#endif
};

}  // namespace

constexpr KernelTable kBaselineKernels = make_table<Baseline>();

}  // namespace col::core
