// The arithmetic of the kernels: how elements are stored and how they are computed, and the built-in operators on two
// elements. The rules are those of reductions on the host, whose code this library does not see: integers wrap, narrow
// floats are computed in float32, min and max propagate a NaN and treat -0 as less than +0.
//
// nvcc compiles it for the GPU. The tests compile it as ordinary C++, and compare it with the host's reductions.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifdef __CUDACC__
#define COL_HOST_DEVICE __host__ __device__
#else
#define COL_HOST_DEVICE
#endif

namespace col::nccl_backend {

// ---- Elements: Storage is the type in memory, Compute the type that an operator works on

template <class T>
struct PlainElement {
  using Storage = T;
  using Compute = T;
  COL_HOST_DEVICE static T widen(T value) { return value; }
  COL_HOST_DEVICE static T narrow(T value) { return value; }
};

// Conversions to float are exact; those from float round to nearest even.
struct Float16Element {
  using Storage = std::uint16_t;
  using Compute = float;
  COL_HOST_DEVICE static float widen(std::uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
  COL_HOST_DEVICE static std::uint16_t narrow(float value) { return __half_as_ushort(__float2half_rn(value)); }
};

struct Bfloat16Element {
  using Storage = std::uint16_t;
  using Compute = float;
  COL_HOST_DEVICE static float widen(std::uint16_t bits) { return __bfloat162float(__ushort_as_bfloat16(bits)); }
  COL_HOST_DEVICE static std::uint16_t narrow(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
};

// As std::bit_cast, which devices do not have.
template <class To, class From>
COL_HOST_DEVICE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// To nearest even, without saturation: what CUDA's own conversions of 8-bit floats do only by way of float64. Numbers
// from `kEnd` on become `kBeyond`. (Bits of float32; the sign of 8-bit floats is the same bit.)
template <int kFraction, std::uint32_t kBias, std::uint32_t kEnd, std::uint32_t kBeyond>
COL_HOST_DEVICE std::uint32_t narrow_finite(std::uint32_t magnitude) {
  constexpr std::uint32_t kRebase = (127 - kBias) << 23, kLeastNormal = kRebase + (1u << 23);
  constexpr int kLost = 23 - kFraction;
  if (magnitude >= kEnd) return kBeyond;
  if (magnitude < kLeastNormal) {  // of a number whose unit is that of the denormals, the addition does the rounding
    constexpr std::uint32_t kRounder = kLeastNormal + (static_cast<std::uint32_t>(kLost) << 23);
    return bits_as<std::uint32_t>(bits_as<float>(magnitude) + bits_as<float>(kRounder)) - kRounder;
  }
  const std::uint32_t rebased = magnitude - kRebase;
  return (rebased + (1u << (kLost - 1)) - 1 + ((rebased >> kLost) & 1u)) >> kLost;
}

struct Float8E4m3fnElement {
  using Storage = std::uint8_t;
  using Compute = float;
  COL_HOST_DEVICE static float widen(std::uint8_t bits) {
    const std::uint32_t sign = (bits & 0x80u) << 24, magnitude = bits & 0x7fu;
    const std::uint32_t number = magnitude < 8 ? bits_as<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-9f)
                                               : (magnitude << 20) + (120u << 23);
    return bits_as<float>(sign | (magnitude == 0x7fu ? 0x7fc00000u : number));
  }
  COL_HOST_DEVICE static std::uint8_t narrow(float value) {
    const auto bits = bits_as<std::uint32_t>(value);
    const std::uint32_t magnitude = narrow_finite<3, 7, 0x43e80001u, 0x7fu>(bits & 0x7fffffffu);  // 464 is the last
    return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | magnitude);
  }
};

struct Float8E5m2Element {
  using Storage = std::uint8_t;
  using Compute = float;
  COL_HOST_DEVICE static float widen(std::uint8_t bits) {
    return Float16Element::widen(static_cast<std::uint16_t>(bits << 8));
  }
  COL_HOST_DEVICE static std::uint8_t narrow(float value) {
    const auto bits = bits_as<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t nan = 0x7eu | (magnitude >> 21 & 3u);
    const std::uint32_t number = narrow_finite<2, 15, 0x47700000u, 0x7cu>(magnitude);  // 61440
    return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | (magnitude > 0x7f800000u ? nan : number));
  }
};

// ---- Operators

// Arithmetic in this type wraps and is never undefined. Narrower operands would be promoted to a signed int.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;

struct Sum {
  template <class T>
  COL_HOST_DEVICE static T apply(T left, T right) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(left) + static_cast<Wrapping<T>>(right));
    else
      return left + right;
  }
};

struct Product {
  template <class T>
  COL_HOST_DEVICE static T apply(T left, T right) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(left) * static_cast<Wrapping<T>>(right));
    else
      return left * right;
  }
};

// If the two do not compare (two zeros, or a NaN and a number), each order returns its right operand. The bits of both
// together are those of -0, or of a NaN.
struct Min {
  template <class T>
  COL_HOST_DEVICE static T apply(T left, T right) {
    if constexpr (std::is_integral_v<T>) {
      return left < right ? left : right;
    } else {
      using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      return bits_as<T>(bits_as<Bits>(left < right ? left : right) | bits_as<Bits>(right < left ? right : left));
    }
  }
};

struct Max {
  template <class T>
  COL_HOST_DEVICE static T apply(T left, T right) {
    if constexpr (std::is_integral_v<T>)
      return left > right ? left : right;
    else
      return -Min::apply(-left, -right);
  }
};

struct BitAnd {
  template <class T>
  COL_HOST_DEVICE static T apply(T left, T right) {
    return static_cast<T>(left & right);
  }
};

struct BitOr {
  template <class T>
  COL_HOST_DEVICE static T apply(T left, T right) {
    return static_cast<T>(left | right);
  }
};

struct BitXor {
  template <class T>
  COL_HOST_DEVICE static T apply(T left, T right) {
    return static_cast<T>(left ^ right);
  }
};

// The last step of an average. Integers round toward zero. Requires: 0 < divisor < 2^31.
template <class T>
COL_HOST_DEVICE T divided(T value, std::uint32_t divisor) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    using Wide = std::conditional_t<std::is_signed_v<T>, std::make_signed_t<Unsigned>, Unsigned>;
    return static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(divisor));
  } else {
    return value / static_cast<T>(divisor);
  }
}

// A rank's factor of a scaled sum, in 8 bytes: for integers a whole number modulo 2^64, for floats a double.
template <class T>
COL_HOST_DEVICE T factor_of(std::uint64_t bits) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(bits);
  else
    return static_cast<T>(bits_as<double>(bits));
}

}  // namespace col::nccl_backend
