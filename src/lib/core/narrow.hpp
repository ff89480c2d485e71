// Conversions of the float formats of 8 and 16 bits. They are inline and free of branches, so that loops over them
// vectorise. They work on bits in places where a processor that flushes denormals to zero would give another result.
#pragma once

#include <bit>
#include <cstdint>

namespace col::core {

// condition ? yes : no, in a form that compilers do not turn into a branch.
inline std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) noexcept {
  const std::uint32_t mask = std::uint32_t{0} - static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

inline float float16_to_float(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  // A denormal is a whole number of units 2^-24, which float holds exactly.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);  // the exponent biases differ by 127 - 15
  const std::uint32_t infinity_or_nan = (magnitude << 13) | 0x7f800000u | select(magnitude > 0x7c00u, 0x00400000u, 0u);
  const std::uint32_t finite = select(magnitude < 0x0400u, denormal, normal);
  return std::bit_cast<float>(sign | select(magnitude >= 0x7c00u, infinity_or_nan, finite));
}

inline std::uint16_t float_to_float16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the unit is 2^-24, which is the unit of floats in [0.5, 1): the addition does the rounding.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t rebased = magnitude - (112u << 23);
  const std::uint32_t normal = (rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13;  // nearest, ties to even
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x03ffu);
  const std::uint32_t finite = select(magnitude < 0x38800000u, denormal, normal);  // 2^-14
  const std::uint32_t number = select(magnitude >= 0x477ff000u, 0x7c00u, finite);  // 65520 rounds to infinity
  return static_cast<std::uint16_t>(sign | select(magnitude > 0x7f800000u, nan, number));
}

inline float bfloat16_to_float(std::uint16_t bits) noexcept {
  const std::uint32_t quiet = (bits & 0x7fffu) > 0x7f80u ? 0x00400000u : 0u;
  return std::bit_cast<float>((static_cast<std::uint32_t>(bits) << 16) | quiet);
}

inline std::uint16_t float_to_bfloat16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;  // nearest, ties to even
  const std::uint32_t nan = (bits >> 16) | 0x0040u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

inline float float8_e4m3fn_to_float(std::uint8_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80u) << 24;
  const std::uint32_t magnitude = bits & 0x7fu;
  // A denormal is a whole number of units 2^-9.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-9f);
  const std::uint32_t normal = (magnitude << 20) + (120u << 23);  // the exponent biases differ by 127 - 7
  const std::uint32_t finite = select(magnitude < 0x08u, denormal, normal);
  return std::bit_cast<float>(sign | select(magnitude == 0x7fu, 0x7fc00000u, finite));
}

inline std::uint8_t float_to_float8_e4m3fn(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Below 2^-6 the unit is 2^-9, which is the unit of floats in [2^14, 2^15).
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) - std::bit_cast<std::uint32_t>(0x1p14f);
  const std::uint32_t rebased = magnitude - (120u << 23);
  const std::uint32_t normal = (rebased + 0x7ffffu + ((rebased >> 20) & 1u)) >> 20;  // nearest, ties to even
  const std::uint32_t finite = select(magnitude < 0x3c800000u, denormal, normal);    // 2^-6
  const std::uint32_t number = select(magnitude > 0x43e80000u, 0x7fu, finite);       // 464 still rounds to 448
  return static_cast<std::uint8_t>(sign | number);
}

inline float float8_e5m2_to_float(std::uint8_t bits) noexcept {
  return float16_to_float(static_cast<std::uint16_t>(bits << 8));
}

inline std::uint8_t float_to_float8_e5m2(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the unit is 2^-16, which is the unit of floats in [2^7, 2^8).
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p7f) - std::bit_cast<std::uint32_t>(0x1p7f);
  const std::uint32_t rebased = magnitude - (112u << 23);
  const std::uint32_t normal = (rebased + 0xfffffu + ((rebased >> 21) & 1u)) >> 21;  // nearest, ties to even
  const std::uint32_t nan = 0x7eu | ((magnitude >> 21) & 0x03u);
  const std::uint32_t finite = select(magnitude < 0x38800000u, denormal, normal);  // 2^-14
  const std::uint32_t number = select(magnitude >= 0x47700000u, 0x7cu, finite);    // 61440 rounds to infinity
  return static_cast<std::uint8_t>(sign | select(magnitude > 0x7f800000u, nan, number));
}

}  // namespace col::core
