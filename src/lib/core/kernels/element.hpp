// How the kernels of reduce.cpp access elements of a dtype. They load and store bytes, so buffers need neither
// alignment nor the kernel's exact type. They compute in a type in which nothing overflows into undefined behaviour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <col/types.hpp>

#include "core/narrow.hpp"

namespace col::core {

template <DType kDType>
struct Element;

// Storage is the type in memory. Compute is the type that an operator works on.
template <class T>
struct PlainElement {
  using Storage = T;
  using Compute = T;
  static Compute widen(Storage value) noexcept { return value; }
  static Storage narrow(Compute value) noexcept { return value; }
};

template <>
struct Element<DType::int8> : PlainElement<std::int8_t> {};
template <>
struct Element<DType::uint8> : PlainElement<std::uint8_t> {};
template <>
struct Element<DType::int32> : PlainElement<std::int32_t> {};
template <>
struct Element<DType::uint32> : PlainElement<std::uint32_t> {};
template <>
struct Element<DType::int64> : PlainElement<std::int64_t> {};
template <>
struct Element<DType::uint64> : PlainElement<std::uint64_t> {};
template <>
struct Element<DType::int16> : PlainElement<std::int16_t> {};
template <>
struct Element<DType::uint16> : PlainElement<std::uint16_t> {};
template <>
struct Element<DType::float32> : PlainElement<float> {};
template <>
struct Element<DType::float64> : PlainElement<double> {};

template <>
struct Element<DType::float16> {
  using Storage = std::uint16_t;
  using Compute = float;
  static float widen(std::uint16_t bits) noexcept { return float16_to_float(bits); }
  static std::uint16_t narrow(float value) noexcept { return float_to_float16(value); }
};

template <>
struct Element<DType::bfloat16> {
  using Storage = std::uint16_t;
  using Compute = float;
  static float widen(std::uint16_t bits) noexcept { return bfloat16_to_float(bits); }
  static std::uint16_t narrow(float value) noexcept { return float_to_bfloat16(value); }
};

template <>
struct Element<DType::float8_e4m3fn> {
  using Storage = std::uint8_t;
  using Compute = float;
  static float widen(std::uint8_t bits) noexcept { return float8_e4m3fn_to_float(bits); }
  static std::uint8_t narrow(float value) noexcept { return float_to_float8_e4m3fn(value); }
};

template <>
struct Element<DType::float8_e5m2> {
  using Storage = std::uint8_t;
  using Compute = float;
  static float widen(std::uint8_t bits) noexcept { return float8_e5m2_to_float(bits); }
  static std::uint8_t narrow(float value) noexcept { return float_to_float8_e5m2(value); }
};

template <DType kDType>
typename Element<kDType>::Compute load(const std::byte* data, std::size_t index) noexcept {
  typename Element<kDType>::Storage value;
  std::memcpy(&value, data + index * sizeof(value), sizeof(value));
  return Element<kDType>::widen(value);
}

template <DType kDType>
void store(std::byte* data, std::size_t index, typename Element<kDType>::Compute computed) noexcept {
  const typename Element<kDType>::Storage value = Element<kDType>::narrow(computed);
  std::memcpy(data + index * sizeof(value), &value, sizeof(value));
}

// The unsigned type for integer arithmetic that wraps without undefined behaviour. It has at least 32 bits, because
// narrower operands would be promoted to a signed int.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;

template <DType kDType>
constexpr bool is_integer = row_of(kDType).is_integer();
// Whether there is an Element of it.
template <DType kDType>
constexpr bool is_number = is_integer<kDType> || row_of(kDType).kind == ElementKind::floating;
// The type of the two parts of a complex number; else the type itself.
constexpr DType part_type(DType dtype) noexcept {
  return dtype == DType::complex64 ? DType::float32 : dtype == DType::complex128 ? DType::float64 : dtype;
}

// Calls function(std::integral_constant<DType, d>) with the d that equals `dtype`. Returns false if `dtype` is not a
// number (is_number).
template <class Function>
bool dispatch(DType dtype, Function&& function) {
  return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    const auto is_it = [&]<DType kDType>(std::integral_constant<DType, kDType> constant) {
      if constexpr (is_number<kDType>) {
        if (dtype == kDType) return function(constant), true;
      }
      return false;
    };
    return (is_it(std::integral_constant<DType, static_cast<DType>(kIndex)>{}) || ...);
  }
  (std::make_index_sequence<kDTypeCount>{});
}

}  // namespace col::core
