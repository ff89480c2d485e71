// What goes in and what must come out.
//
// Data repeats itself after a prime number of elements: quick to make and to compare, and yet what belongs a page, a
// slice or a block further on is not the same.
//
// Values are whole numbers below 32, so float32 sums over up to 128 ranks are exact in any order. They depend on rank,
// place and seed: data of another rank, place or iteration does not pass. (bfloat16 has values of its own.)
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cell.hpp"

namespace contest {

inline constexpr std::size_t kPeriod = 65521;

// The elements from `offset` on, one period of them or fewer; `value(i)` gives the element at place i.
template <class T, class Value>
std::vector<T> period_of(std::size_t offset, std::size_t count, const Value& value) {
  std::vector<T> period(std::min(count, kPeriod));
  for (std::size_t i = 0; i < period.size(); ++i) period[i] = value((offset + i) % kPeriod);
  return period;
}

template <class T, class Value>
void fill_periodic(T* to, std::size_t count, const Value& value) {
  const std::vector<T> period = period_of<T>(0, count, value);
  for (std::size_t begin = 0; begin < count; begin += kPeriod)
    std::copy_n(period.begin(), std::min(kPeriod, count - begin), to + begin);
}

// How many of `count` elements are not what they are to be.
template <class T, class Value>
std::size_t count_different(const T* got, std::size_t offset, std::size_t count, const Value& value) {
  const std::vector<T> period = period_of<T>(offset, count, value);
  std::size_t different = 0;
  for (std::size_t begin = 0; begin < count; begin += kPeriod) {
    const std::size_t length = std::min(kPeriod, count - begin);
    for (std::size_t i = 0; i < length; ++i) different += got[begin + i] != period[i] ? 1 : 0;
  }
  return different;
}

// What goes into a sum of bfloat16, and the only result that is right: the float32 sum in rank order, rounded once to
// nearest, ties to even. The values differ so much in size and sign that another order, or a rounding on the way,
// shows.
namespace bfloat16 {

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

}  // namespace bfloat16

inline constexpr float kSpoiled = -1;
// Of element `i` of what `rank` contributes.
inline float value(int rank, std::size_t i, unsigned seed) {
  // The upper bits of a product with an odd number: neighbours differ, and so do places a page or a chunk apart.
  const std::uint32_t mixed = (std::uint32_t(i) * 2654435761u) >> 16;
  return float(std::int32_t((mixed + 11u * std::uint32_t(rank) + 5u * seed) & 31u));
}

inline float sum(int ranks, std::size_t i, unsigned seed) {
  float total = 0;
  for (int rank = 0; rank < ranks; ++rank) total += value(rank, i, seed);
  return total;
}

// Whether this rank's output is specified at all.
inline bool has_result(const Cell& cell) {
  return cell.has_data() && cell.out_count > 0;
}

// A part of an output: from `begin`, the elements from `offset` of what one rank contributed, or of the sum of all.
struct Piece {
  static constexpr int kSum = -1;
  std::size_t begin = 0;
  std::size_t count = 0;
  std::size_t offset = 0;
  int rank = 0;
};

inline std::vector<Piece> expected(const Cell& cell) {
  const std::size_t own_block = std::size_t(cell.rank) * cell.block;
  std::vector<Piece> pieces;
  switch (cell.operation) {
    case Operation::allreduce:
    case Operation::allreduce_in_place:
    case Operation::reduce:
    case Operation::then_compute:
    case Operation::beside_compute:
    case Operation::beside_tests:
      return {{0, cell.out_count, 0, Piece::kSum}};
    case Operation::reduce_scatter:
      return {{0, cell.out_count, own_block, Piece::kSum}};
    case Operation::allgather:
    case Operation::gather:
      for (int rank = 0; rank < cell.size; ++rank)
        pieces.push_back({std::size_t(rank) * cell.block, cell.block, 0, rank});
      return pieces;
    case Operation::scatter:
      return {{0, cell.out_count, own_block, 0}};
    case Operation::alltoall:
      for (int rank = 0; rank < cell.size; ++rank)
        pieces.push_back({std::size_t(rank) * cell.block, cell.block, own_block, rank});
      return pieces;
    case Operation::round_trip:
      return {{0, cell.out_count, 0, 1 - cell.rank}};
    default:
      return {{0, cell.out_count, 0, 0}};
  }
}

inline std::size_t count_wrong(const float* got, const Piece& piece, int ranks, unsigned seed) {
  return count_different(got, piece.offset, piece.count, [&](std::size_t i) {
    return piece.rank == Piece::kSum ? sum(ranks, i, seed) : value(piece.rank, i, seed);
  });
}

inline void fill(const Cell& cell, unsigned seed) {
  if (cell.operation == Operation::allreduce_bfloat16) return bfloat16::fill(cell, seed);
  const auto own = [&](std::size_t i) { return value(cell.rank, i, seed); };
  fill_periodic(cell.in, cell.in_count, own);
  if (cell.operation == Operation::allreduce_in_place || (cell.operation == Operation::broadcast && cell.rank == 0))
    fill_periodic(cell.out, cell.out_count, own);
  else
    std::fill_n(cell.out, cell.out_count, kSpoiled);
}

inline void clear(const Cell& cell) {
  std::fill_n(cell.out, cell.out_count, 0.0f);
}

inline std::size_t count_wrong(const Cell& cell, unsigned seed) {
  if (cell.operation == Operation::allreduce_bfloat16) return bfloat16::count_wrong(cell, seed);
  if (cell.point_to_point() && cell.rank > 1) return 0;
  std::size_t wrong = 0;
  if (has_result(cell))
    for (const Piece& piece : expected(cell)) wrong += count_wrong(cell.out + piece.begin, piece, cell.size, seed);
  // An input that a rank may still need must not have been written to.
  return wrong + count_wrong(cell.in, {0, cell.in_count, 0, cell.rank}, cell.size, seed);
}

inline std::size_t count_not_zero(const Cell& cell) {
  return cell.out_count - std::size_t(std::count(cell.out, cell.out + cell.out_count, 0.0f));
}

}  // namespace contest
