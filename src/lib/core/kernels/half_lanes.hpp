// 16-bit floats in vectors: the functions of half.hpp, lane by lane, or by the instruction set's own conversions if it
// has some. Included once by each source file of kernels/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <col/types.hpp>

#include "core/kernels/vectors.hpp"

namespace col::core {
namespace {  // NOLINT(google-build-namespaces)

// Conversions that need only arithmetic on lanes of 32 bits. A 16-bit float is in the lower half of its lane, and the
// upper half is zero.
template <DType kDType, std::size_t kBytes>
struct HalfLanes;

template <std::size_t kBytes>
struct HalfLanes<DType::float16, kBytes> {
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
struct HalfLanes<DType::bfloat16, kBytes> {
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

// ---- In the order of memory -----------------------------------------------------------------------------------------

// kBytes / 4 elements of kDType, as floats.
template <class Isa, DType kDType, std::size_t kBytes>
[[gnu::always_inline]] inline Floats<kBytes> load_floats(const std::byte* from) {
  if constexpr (kDType == DType::float32) {
    return load_vector<float, kBytes>(from);
  } else {
    const auto halves = load_vector<std::uint16_t, kBytes / 2>(from);
    if constexpr (kDType == DType::float16 && Isa::kConvertsFloat16) {
      return Isa::template widen_float16<kBytes>(halves);
    } else {
      return HalfLanes<kDType, kBytes>::widen(Isa::template to_words<kBytes>(halves));
    }
  }
}

template <class Isa, DType kDType, std::size_t kBytes>
[[gnu::always_inline]] inline Halves<kBytes> narrow_floats(Floats<kBytes> value) {
  if constexpr (kDType == DType::float16 && Isa::kConvertsFloat16) {
    return Isa::template narrow_float16<kBytes>(value);
  } else {
    return Isa::template to_halves<kBytes>(HalfLanes<kDType, kBytes>::narrow(value));
  }
}

template <class Isa, DType kDType, std::size_t kBytes>
[[gnu::always_inline]] inline void store_floats(std::byte* to, Floats<kBytes> value) {
  if constexpr (kDType == DType::float32) {
    std::memcpy(to, &value, sizeof(value));
  } else {
    const Halves<kBytes> halves = narrow_floats<Isa, kDType, kBytes>(value);
    std::memcpy(to, &halves, sizeof(halves));
  }
}

}  // namespace
}  // namespace col::core
