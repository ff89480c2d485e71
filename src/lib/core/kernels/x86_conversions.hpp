// Conversions between 8, 16 and 32 bits by instructions of x86-64, and sums whose operands keep their places. Included
// once by avx2.cpp and avx512.cpp; only the latter uses vectors of 64 bytes.
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "core/kernels/vectors.hpp"

namespace col::core {
namespace {  // NOLINT(google-build-namespaces)

struct X86Conversions {
  static constexpr bool kConvertsFloat16 = true;
  // The forms without a mask make gcc 12 warn about their undefined operand.
  static constexpr __mmask16 kAll = 0xffff;

  // As combine_in_order() says.
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Floats<kBytes> sum(Floats<kBytes> left, Floats<kBytes> right) {
    Floats<kBytes> result;
    asm("vaddps %2, %1, %0" : "=v"(result) : "v"(left), "v"(right));
    return result;
  }
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Floats<kBytes> product(Floats<kBytes> left, Floats<kBytes> right) {
    Floats<kBytes> result;
    asm("vmulps %2, %1, %0" : "=v"(result) : "v"(left), "v"(right));
    return result;
  }

  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Floats<kBytes> widen_float16(Halves<kBytes> halves) {
    if constexpr (kBytes == 64) {
      return as<Floats<kBytes>>(_mm512_maskz_cvtph_ps(kAll, as<__m256i>(halves)));
    } else if constexpr (kBytes == 32) {
      return as<Floats<kBytes>>(_mm256_cvtph_ps(as<__m128i>(halves)));
    } else {
      return as<Floats<kBytes>>(_mm_cvtph_ps(_mm_cvtsi64_si128(as<long long>(halves))));
    }
  }

  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Halves<kBytes> narrow_float16(Floats<kBytes> value) {
    if constexpr (kBytes == 64) {
      return as<Halves<kBytes>>(_mm512_maskz_cvtps_ph(kAll, as<__m512>(value), _MM_FROUND_TO_NEAREST_INT));
    } else if constexpr (kBytes == 32) {
      return as<Halves<kBytes>>(_mm256_cvtps_ph(as<__m256>(value), _MM_FROUND_TO_NEAREST_INT));
    } else {
      return as<Halves<kBytes>>(_mm_cvtsi128_si64(_mm_cvtps_ph(as<__m128>(value), _MM_FROUND_TO_NEAREST_INT)));
    }
  }

  // As __builtin_convertvector(), which gcc 12 splits into halves.
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Words<kBytes> to_words(Halves<kBytes> halves) {
    if constexpr (kBytes == 64) {
      return as<Words<kBytes>>(_mm512_maskz_cvtepu16_epi32(kAll, as<__m256i>(halves)));
    } else if constexpr (kBytes == 32) {
      return as<Words<kBytes>>(_mm256_cvtepu16_epi32(as<__m128i>(halves)));
    } else {
      return as<Words<kBytes>>(_mm_cvtepu16_epi32(_mm_cvtsi64_si128(as<long long>(halves))));
    }
  }

  // Requires: every word fits.
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Halves<kBytes> to_halves(Words<kBytes> words) {
    if constexpr (kBytes == 64) {
      return as<Halves<kBytes>>(_mm512_maskz_cvtepi32_epi16(kAll, as<__m512i>(words)));
    } else if constexpr (kBytes == 32) {
      const __m256i all = as<__m256i>(words);
      return as<Halves<kBytes>>(_mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
    } else {
      const __m128i all = as<__m128i>(words);
      return as<Halves<kBytes>>(_mm_cvtsi128_si64(_mm_packus_epi32(all, all)));
    }
  }

  // Each byte with its sign.
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Halves<kBytes> extend(Quarters<kBytes> quarters) {
    if constexpr (kBytes == 64) {
      return as<Halves<kBytes>>(_mm256_cvtepi8_epi16(as<__m128i>(quarters)));
    } else if constexpr (kBytes == 32) {
      return as<Halves<kBytes>>(_mm_cvtepi8_epi16(_mm_cvtsi64_si128(as<long long>(quarters))));
    } else {
      return as<Halves<kBytes>>(_mm_cvtsi128_si64(_mm_cvtepi8_epi16(_mm_cvtsi32_si128(as<int>(quarters)))));
    }
  }

  // Requires: every word fits.
  template <std::size_t kBytes>
  [[gnu::always_inline]] static inline Quarters<kBytes> to_quarters(Words<kBytes> words) {
    if constexpr (kBytes == 64) {
      return as<Quarters<kBytes>>(_mm512_maskz_cvtepi32_epi8(kAll, as<__m512i>(words)));
    } else {
      __m128i halves;
      if constexpr (kBytes == 32) {
        const __m256i all = as<__m256i>(words);
        halves = _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
      } else {
        halves = _mm_packus_epi32(as<__m128i>(words), as<__m128i>(words));
      }
      const __m128i bytes = _mm_packus_epi16(halves, halves);
      if constexpr (kBytes == 32)
        return as<Quarters<kBytes>>(_mm_cvtsi128_si64(bytes));
      else
        return as<Quarters<kBytes>>(_mm_cvtsi128_si32(bytes));
    }
  }
};

}  // namespace
}  // namespace col::core
