// Narrow floats in vectors: the functions of narrow.hpp, lane by lane, or by the instruction set's own conversions if
// it has some. Included once by each source file of kernels/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <col/types.hpp>

#include "core/kernels/element.hpp"
#include "core/kernels/vectors.hpp"

namespace col::core {
namespace {  // NOLINT(google-build-namespaces)

// Conversions that need only arithmetic on lanes of 32 bits. A narrow float is in the lowest bits of its lane, and the
// others are zero.
template <DType kDType, std::size_t kBytes>
struct NarrowLanes;

template <std::size_t kBytes>
struct NarrowLanes<DType::float16, kBytes> {
  using W = Words<kBytes>;
  using F = Floats<kBytes>;

  [[gnu::always_inline]] static inline F widen(W bits) {
    const W sign = (bits & 0x8000U) << 16;
    const W magnitude = bits & 0x7fffU;
    using Signed = Vector<std::int32_t, kBytes>;
    const W denormal = as<W>(__builtin_convertvector(as<Signed>(magnitude), F) * 0x1p-24F);
    const W normal = (magnitude << 13) + (112U << 23);
    const W quiet = as<W>(magnitude > 0x7c00U) & 0x0040'0000U;
    const W infinity_or_nan = (magnitude << 13) | 0x7f80'0000U | quiet;
    const W finite = magnitude < 0x0400U ? denormal : normal;
    return as<F>(sign | (magnitude >= 0x7c00U ? infinity_or_nan : finite));
  }

  [[gnu::always_inline]] static inline W narrow(F value) {
    const W bits = as<W>(value);
    const W sign = (bits >> 16) & 0x8000U;
    const W magnitude = bits & 0x7fff'ffffU;
    const W denormal = as<W>(as<F>(magnitude) + 0.5F) - 0x3f00'0000U;  // of 0.5
    const W rebased = magnitude - (112U << 23);
    const W normal = (rebased + 0xfffU + ((rebased >> 13) & 1U)) >> 13;
    const W nan = 0x7e00U | ((magnitude >> 13) & 0x03ffU);
    const W finite = magnitude < 0x3880'0000U ? denormal : normal;
    const W number = magnitude >= 0x477f'f000U ? splat<std::uint32_t, kBytes>(0x7c00U) : finite;
    return sign | (magnitude > 0x7f80'0000U ? nan : number);
  }
};

template <std::size_t kBytes>
struct NarrowLanes<DType::bfloat16, kBytes> {
  using W = Words<kBytes>;
  using F = Floats<kBytes>;

  [[gnu::always_inline]] static inline F widen(W bits) {
    const F value = as<F>(bits << 16);
    return as<F>(as<W>(value) | (as<W>(value != value) & 0x0040'0000U));
  }

  // The result is in the upper half of each lane. The lower half has any value.
  [[gnu::always_inline]] static inline W narrow_upper(F value) {
    const W bits = as<W>(value);
    const W rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    const W nan = bits | 0x0040'0000U;
    return value != value ? nan : rounded;
  }

  [[gnu::always_inline]] static inline W narrow(F value) { return narrow_upper(value) >> 16; }
};

template <std::size_t kBytes>
struct NarrowLanes<DType::float8_e4m3fn, kBytes> {
  using W = Words<kBytes>;
  using F = Floats<kBytes>;

  [[gnu::always_inline]] static inline F widen(W bits) {
    const W sign = (bits & 0x80U) << 24;
    const W magnitude = bits & 0x7fU;
    using Signed = Vector<std::int32_t, kBytes>;
    const W denormal = as<W>(__builtin_convertvector(as<Signed>(magnitude), F) * 0x1p-9F);
    const W normal = (magnitude << 20) + (120U << 23);
    const W finite = magnitude < 0x08U ? denormal : normal;
    return as<F>(sign | (magnitude == 0x7fU ? splat<std::uint32_t, kBytes>(0x7fc0'0000U) : finite));
  }

  [[gnu::always_inline]] static inline W narrow(F value) {
    const W bits = as<W>(value);
    const W sign = (bits >> 24) & 0x80U;
    const W magnitude = bits & 0x7fff'ffffU;
    const W denormal = as<W>(as<F>(magnitude) + 0x1p14F) - 0x4680'0000U;  // of 2^14
    const W rebased = magnitude - (120U << 23);
    const W normal = (rebased + 0x7'ffffU + ((rebased >> 20) & 1U)) >> 20;
    const W finite = magnitude < 0x3c80'0000U ? denormal : normal;
    return sign | (magnitude > 0x43e8'0000U ? splat<std::uint32_t, kBytes>(0x7fU) : finite);
  }
};

template <std::size_t kBytes>
struct NarrowLanes<DType::float8_e5m2, kBytes> {
  using W = Words<kBytes>;
  using F = Floats<kBytes>;

  [[gnu::always_inline]] static inline F widen(W bits) { return NarrowLanes<DType::float16, kBytes>::widen(bits << 8); }

  [[gnu::always_inline]] static inline W narrow(F value) {
    const W bits = as<W>(value);
    const W sign = (bits >> 24) & 0x80U;
    const W magnitude = bits & 0x7fff'ffffU;
    const W denormal = as<W>(as<F>(magnitude) + 0x1p7F) - 0x4300'0000U;  // of 2^7
    const W rebased = magnitude - (112U << 23);
    const W normal = (rebased + 0xf'ffffU + ((rebased >> 21) & 1U)) >> 21;
    const W nan = 0x7eU | ((magnitude >> 21) & 0x03U);
    const W finite = magnitude < 0x3880'0000U ? denormal : normal;
    const W number = magnitude >= 0x4770'0000U ? splat<std::uint32_t, kBytes>(0x7cU) : finite;
    return sign | (magnitude > 0x7f80'0000U ? nan : number);
  }
};

// ---- In the order of memory -----------------------------------------------------------------------------------------

// As many elements of kDType as there are floats in Floats<kBytes>.
template <DType kDType, std::size_t kBytes>
using NarrowVector = std::conditional_t<row_of(kDType).size == 1, Quarters<kBytes>, Halves<kBytes>>;

// 8-bit floats by way of float16: float8_e5m2 is its upper half, and the fraction and exponent of a float8_e4m3fn are
// those of a 256th part. (Whether denormals are flushed makes no difference to the instruction.)
template <class Isa, DType kDType, std::size_t kBytes>
[[gnu::always_inline]] inline Floats<kBytes> widen_by_float16(Quarters<kBytes> narrow) {
  const Halves<kBytes> halves = Isa::template extend<kBytes>(narrow);
  if constexpr (kDType == DType::float8_e5m2) {
    return Isa::template widen_float16<kBytes>(halves << 8);
  } else {
    constexpr auto kNoCopyOfSign = static_cast<std::uint16_t>(0xbfffU);
    using W = Words<kBytes>;
    const W bits = as<W>(Isa::template widen_float16<kBytes>((halves << 7) & kNoCopyOfSign) * 256.0F);
    const W nan = (bits & 0x8000'0000U) | 0x7fc0'0000U;
    return as<Floats<kBytes>>((bits & 0x7fff'ffffU) == 0x43f0'0000U ? nan : bits);  // of 480
  }
}

// kBytes / 4 elements of kDType, as floats.
template <class Isa, DType kDType, std::size_t kBytes>
[[gnu::always_inline]] inline Floats<kBytes> load_floats(const std::byte* from) {
  if constexpr (kDType == DType::float32) {
    return load_vector<float, kBytes>(from);
  } else {
    const auto narrow = load_vector<typename Element<kDType>::Storage, sizeof(NarrowVector<kDType, kBytes>)>(from);
    if constexpr (kDType == DType::float16 && Isa::kConvertsFloat16) {
      return Isa::template widen_float16<kBytes>(narrow);
    } else if constexpr (row_of(kDType).size == 1 && Isa::kConvertsFloat16) {
      return widen_by_float16<Isa, kDType, kBytes>(narrow);
    } else {
      return NarrowLanes<kDType, kBytes>::widen(Isa::template to_words<kBytes>(narrow));
    }
  }
}

template <class Isa, DType kDType, std::size_t kBytes>
[[gnu::always_inline]] inline NarrowVector<kDType, kBytes> narrow_floats(Floats<kBytes> value) {
  if constexpr (kDType == DType::float16 && Isa::kConvertsFloat16) {
    return Isa::template narrow_float16<kBytes>(value);
  } else if constexpr (row_of(kDType).size == 1) {
    return Isa::template to_quarters<kBytes>(NarrowLanes<kDType, kBytes>::narrow(value));
  } else {
    return Isa::template to_halves<kBytes>(NarrowLanes<kDType, kBytes>::narrow(value));
  }
}

template <class Isa, DType kDType, std::size_t kBytes>
[[gnu::always_inline]] inline void store_floats(std::byte* to, Floats<kBytes> value) {
  if constexpr (kDType == DType::float32) {
    std::memcpy(to, &value, sizeof(value));
  } else {
    const NarrowVector<kDType, kBytes> narrow = narrow_floats<Isa, kDType, kBytes>(value);
    std::memcpy(to, &narrow, sizeof(narrow));
  }
}

}  // namespace
}  // namespace col::core
