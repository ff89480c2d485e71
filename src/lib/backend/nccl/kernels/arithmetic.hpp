// The arithmetic of the kernels: how elements are stored and how they are computed, and the built-in operators on two
// elements. The rules are those of reductions on the host, whose code this library does not see: integers wrap, 16-bit
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

// ---- Operators

// As std::bit_cast, which devices do not have.
template <class To, class From>
COL_HOST_DEVICE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

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
