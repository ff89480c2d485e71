// Element types: from a DType to its C++ type, and what tools and tests have to know of one.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <col/types.hpp>

namespace col::tools {

template <class T>
constexpr bool is_complex_v = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <class T>
constexpr bool is_float8_v = std::is_same_v<T, float8_e4m3fn> || std::is_same_v<T, float8_e5m2>;
template <class T>
constexpr bool is_narrow_v = is_float8_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// The type of partial results of built-in reductions, and the elements in it.
template <class T>
using Partial = std::conditional_t<is_narrow_v<T>, float, T>;

// The type that a number of ranks, or a scale, has to a floating or complex element.
template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};

// The number of significant bits of a floating type, with the leading one.
template <class T>
constexpr int kPrecision = std::is_same_v<T, float16>         ? 11
                           : std::is_same_v<T, bfloat16>      ? 8
                           : std::is_same_v<T, float8_e4m3fn> ? 4
                           : std::is_same_v<T, float8_e5m2>   ? 3
                                                              : std::numeric_limits<Partial<T>>::digits;

template <class T>
auto bits_of(T value) {
  if constexpr (sizeof(T) == 1)
    return std::bit_cast<std::uint8_t>(value);
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<std::uint16_t>(value);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<std::uint32_t>(value);
  else
    return std::bit_cast<std::uint64_t>(value);
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<Partial<T>>(value));
}

// Equal bits, but for those of a NaN.
template <class T>
bool is_alike(T a, T b) {
  if constexpr (is_complex_v<T>)
    return is_alike(a.real(), b.real()) && is_alike(a.imag(), b.imag());
  else
    return is_nan(a) ? is_nan(b) : bits_of(a) == bits_of(b);
}

// A small whole number as an element, and back: of a complex one, its real part.
template <class T>
T element_of(float value) {
  if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else
    return static_cast<T>(value);
}
template <class T>
float value_of_element(T element) {
  if constexpr (is_complex_v<T>)
    return static_cast<float>(element.real());
  else
    return static_cast<float>(element);
}

// Calls body(T{}) for the C++ type of a DType. Requires: not opaque.
template <class Body>
auto with_element(DType dtype, Body body) {
  switch (dtype) {
    case DType::int8:
      return body(std::int8_t{});
    case DType::uint8:
      return body(std::uint8_t{});
    case DType::int32:
      return body(std::int32_t{});
    case DType::uint32:
      return body(std::uint32_t{});
    case DType::int64:
      return body(std::int64_t{});
    case DType::uint64:
      return body(std::uint64_t{});
    case DType::float16:
      return body(float16{});
    case DType::bfloat16:
      return body(bfloat16{});
    case DType::float8_e4m3fn:
      return body(float8_e4m3fn{});
    case DType::float8_e5m2:
      return body(float8_e5m2{});
    case DType::float32:
      return body(float{});
    case DType::int16:
      return body(std::int16_t{});
    case DType::uint16:
      return body(std::uint16_t{});
    case DType::boolean:
      return body(bool{});
    case DType::complex64:
      return body(std::complex<float>{});
    case DType::complex128:
      return body(std::complex<double>{});
    default:
      return body(double{});
  }
}

}  // namespace col::tools
