// From a DType to its C++ type.
#pragma once

#include <complex>
#include <cstdint>

#include <col/types.hpp>

namespace col::colcheck {

template <class T>
constexpr bool is_complex_v = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// Complex numbers as the textbook multiplies them.
template <class T>
T product_of(T left, T right) {
  if constexpr (is_complex_v<T>)
    return {left.real() * right.real() - left.imag() * right.imag(),
            left.real() * right.imag() + left.imag() * right.real()};
  else
    return left * right;
}

// The type that a number of ranks, or a scale, has to a floating or complex element.
template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};

// A small whole number as an element, and back.
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

}  // namespace col::colcheck
