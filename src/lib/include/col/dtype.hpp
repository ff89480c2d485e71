// The table of element types: one row for each. Kernels, checks, tools and tests read it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <col/export.hpp>

namespace col {

// The type of an opaque element has a value above `bytes`: see opaque().
enum class DType : std::uint32_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  int16,
  uint16,
  boolean,        // C++'s bool: one byte, 0 is false, and anything else is true
  complex64,      // two float32: std::complex<float>
  complex128,     // two float64: std::complex<double>
  float8_e4m3fn,  // 4 bits of exponent, 3 of fraction, no infinity; ml_dtypes and torch use this name
  float8_e5m2,    // 5 bits of exponent, 2 of fraction
  bytes = 256     // an opaque element without its size: no call takes it
};
inline constexpr int kDTypeCount = 17;  // opaque elements are not counted

enum class ElementKind : std::uint8_t { signed_integer, unsigned_integer, floating, boolean, complex, opaque };

struct DTypeRow {
  std::string_view name;
  std::uint32_t size = 0;  // bytes
  ElementKind kind = ElementKind::opaque;
  std::uint8_t dlpack_code = 255;  // DLDataTypeCode of dlpack.h; 255: none

  constexpr bool is_integer() const noexcept {
    return kind == ElementKind::signed_integer || kind == ElementKind::unsigned_integer;
  }
  // A narrow float, one of 8 or 16 bits: built-in operators compute it in float32.
  constexpr bool is_narrow() const noexcept { return kind == ElementKind::floating && size < 4; }
};

// One row for each enumerator, in the same order.
inline constexpr std::array<DTypeRow, kDTypeCount> kDTypes = {{
    {"int8", 1, ElementKind::signed_integer, 0},
    {"uint8", 1, ElementKind::unsigned_integer, 1},
    {"int32", 4, ElementKind::signed_integer, 0},
    {"uint32", 4, ElementKind::unsigned_integer, 1},
    {"int64", 8, ElementKind::signed_integer, 0},
    {"uint64", 8, ElementKind::unsigned_integer, 1},
    {"float16", 2, ElementKind::floating, 2},
    {"bfloat16", 2, ElementKind::floating, 4},
    {"float32", 4, ElementKind::floating, 2},
    {"float64", 8, ElementKind::floating, 2},
    {"int16", 2, ElementKind::signed_integer, 0},
    {"uint16", 2, ElementKind::unsigned_integer, 1},
    {"boolean", 1, ElementKind::boolean, 6},
    {"complex64", 8, ElementKind::complex, 5},
    {"complex128", 16, ElementKind::complex, 5},
    {"float8_e4m3fn", 1, ElementKind::floating, 10},
    {"float8_e5m2", 1, ElementKind::floating, 12},
}};
inline constexpr DTypeRow kOpaqueRow = {"bytes"};

// The largest opaque element that calls can move, and the largest that a user's operator can combine.
inline constexpr std::size_t kMaxElementBytes = std::size_t{1} << 30;
inline constexpr std::size_t kMaxReducedBytes = 256;

// The type of opaque elements of `size` bytes, for example of a struct of the program. Calls that move data take it. A
// reduction by Op::user() takes it up to kMaxReducedBytes. col never splits such an element. Ranks that pass different
// sizes are a mismatch. A `size` of 0, or above kMaxElementBytes, gives DType::bytes: every call refuses it.
constexpr DType opaque(std::size_t size) noexcept {
  return static_cast<DType>(static_cast<std::uint32_t>(DType::bytes) +
                            (size <= kMaxElementBytes ? static_cast<std::uint32_t>(size) : 0U));
}

constexpr bool is_opaque(DType dtype) noexcept {
  return dtype >= DType::bytes;
}

// The row of a type. All opaque types have kOpaqueRow, whose size is 0. Requires: an enumerator, or an opaque type.
constexpr const DTypeRow& row_of(DType dtype) noexcept {
  return is_opaque(dtype) ? kOpaqueRow : kDTypes[static_cast<std::size_t>(dtype)];
}

// Bytes of one element; 0 for a value that is no type.
constexpr std::size_t size_of(DType dtype) noexcept {
  const auto number = static_cast<std::uint32_t>(dtype);
  if (number < kDTypeCount) return kDTypes[number].size;
  const std::size_t size = is_opaque(dtype) ? number - static_cast<std::uint32_t>(DType::bytes) : 0;
  return size <= kMaxElementBytes ? size : 0;
}

// The name of the enumerator ("float32"). An opaque type has its size in the name ("bytes[12]"), a value that is no
// type has "?". The text stays valid for ever. Thread safe.
COL_EXPORT std::string_view to_string(DType dtype) noexcept;
// The DType of that name. Throws invalid_argument that lists the valid names.
COL_EXPORT DType dtype_from_string(std::string_view name);

}  // namespace col
