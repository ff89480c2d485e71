// The kernels for x86-64 with AVX-512 F, BW, DQ and VL: 64-byte vectors. See kernel_table.hpp for the pragmas.
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
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,f16c,prefer-vector-width=512")
#endif

#include "core/kernels/make_table.hpp"
#include "core/kernels/x86_conversions.hpp"

namespace col::core {
namespace {

struct Avx512 : X86Conversions {
  static constexpr std::size_t kVectorBytes = 64;
  static constexpr std::size_t kAccumulators = 8;

  template <class Stored>
  [[gnu::always_inline]] static inline void stream(std::byte* to, Stored value) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), as<__m512i>(value));
  }
  static void fence() { _mm_sfence(); }
};

}  // namespace

constexpr KernelTable kAvx512Kernels = make_table<Avx512>();

}  // namespace col::core

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
