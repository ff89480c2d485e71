// What goes into a sum of bfloat16, and the only result that is right: the float32 sum in rank order, rounded once to
// nearest, ties to even. The values differ so much in size and sign that another order, or a rounding on the way,
// shows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "cell.hpp"
#include "periodic.hpp"

namespace contest::bfloat16 {

inline constexpr std::uint16_t kSpoiled = 0xffff;  // a NaN

inline std::uint32_t mixed(std::uint32_t word) {
  word *= 2654435761u;
  word ^= word >> 15;
  return word * 2246822519u;
}

// Of element `i` of what `rank` contributes: either sign, 2^-16 to 2^15, any fraction. In one of four elements the
// ranks cancel each other in pairs, and the sum is what the order of the additions has left of it.
inline std::uint16_t bits(int rank, std::size_t i, unsigned seed) {
  const std::uint32_t place = std::uint32_t(i) + 131071u * seed;
  const std::uint32_t cancels = mixed(place) >> 30 == 0 ? 2u : 0u;
  const std::uint32_t source = std::uint32_t(rank) & ~cancels;
  const std::uint32_t word = mixed(place + 0x9e3779b9u * (source + 1));
  const std::uint32_t sign = (word >> 31) ^ ((std::uint32_t(rank) & cancels) >> 1);
  const std::uint32_t exponent = 111 + ((word >> 26) & 31u);
  const std::uint32_t fraction = (word >> 19) & 127u;
  return std::uint16_t(sign << 15 | exponent << 7 | fraction);
}

inline float widened(std::uint16_t value) {
  return std::bit_cast<float>(std::uint32_t(value) << 16);
}

// Of a finite value that stays one.
inline std::uint16_t rounded(float value) {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
  return std::uint16_t((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

inline std::uint16_t sum(int ranks, std::size_t i, unsigned seed) {
  float total = widened(bits(0, i, seed));
  for (int rank = 1; rank < ranks; ++rank) total += widened(bits(rank, i, seed));
  return rounded(total);
}

inline void fill(const Cell& cell, unsigned seed) {
  fill_periodic(cell.in16(), cell.in_count, [&](std::size_t i) { return bits(cell.rank, i, seed); });
  std::fill_n(cell.out16(), cell.out_count, kSpoiled);
}

inline std::size_t count_wrong(const Cell& cell, unsigned seed) {
  return count_different(cell.out16(), 0, cell.out_count, [&](std::size_t i) { return sum(cell.size, i, seed); }) +
         count_different(cell.in16(), 0, cell.in_count, [&](std::size_t i) { return bits(cell.rank, i, seed); });
}

}  // namespace contest::bfloat16
