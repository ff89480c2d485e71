// The kernels for x86-64 with AVX2 and F16C: 32-byte vectors. See kernel_table.hpp for the pragmas.
#if defined(__x86_64__)

#include <immintrin.h>

// All that the templates need from outside, so that none of it is compiled for the larger instruction set.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <col/types.hpp>

#include "core/kernels/element.hpp"
#include "core/kernels/kernel_table.hpp"
#include "core/kernels/operators.hpp"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif

#include "core/kernels/make_table.hpp"
#include "core/kernels/x86_conversions.hpp"

namespace col::core {
namespace {

struct Avx2 : X86Conversions {
  static constexpr std::size_t kVectorBytes = 32;
  static constexpr std::size_t kAccumulators = 8;

  template <class Stored>
  [[gnu::always_inline]] static inline void stream(std::byte* to, Stored value) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), as<__m256i>(value));
  }
  static void fence() { _mm_sfence(); }
};

}  // namespace

constexpr KernelTable kAvx2Kernels = make_table<Avx2>();

}  // namespace col::core

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
