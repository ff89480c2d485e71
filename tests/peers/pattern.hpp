// What goes in and what must come out.
//
// Values are whole numbers below 32, so float32 sums over up to 64 ranks are exact in any order. They depend on rank,
// place and seed: data of another rank, place or iteration does not pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cell.hpp"

namespace contest {

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
  return cell.operation != Operation::barrier && cell.out_count > 0;
}

inline float expected(const Cell& cell, std::size_t i, unsigned seed) {
  const std::size_t own_block = std::size_t(cell.rank) * cell.block;
  switch (cell.operation) {
    case Operation::allreduce:
    case Operation::allreduce_in_place:
    case Operation::reduce:
      return sum(cell.size, i, seed);
    case Operation::reduce_scatter:
      return sum(cell.size, own_block + i, seed);
    case Operation::allgather:
    case Operation::gather:
      return value(int(i / cell.block), i % cell.block, seed);
    case Operation::scatter:
      return value(0, own_block + i, seed);
    case Operation::alltoall:
      return value(int(i / cell.block), own_block + i % cell.block, seed);
    case Operation::round_trip:
      return value(1 - cell.rank, i, seed);
    default:
      return value(0, i, seed);
  }
}

inline void fill(const Cell& cell, unsigned seed) {
  for (std::size_t i = 0; i < cell.in_count; ++i) cell.in[i] = value(cell.rank, i, seed);
  const bool holds_input =
      cell.operation == Operation::allreduce_in_place || (cell.operation == Operation::broadcast && cell.rank == 0);
  if (holds_input)
    for (std::size_t i = 0; i < cell.out_count; ++i) cell.out[i] = value(cell.rank, i, seed);
  else
    std::fill_n(cell.out, cell.out_count, kSpoiled);
}

inline void clear(const Cell& cell) {
  std::fill_n(cell.out, cell.out_count, 0.0f);
}

inline std::size_t count_wrong(const Cell& cell, unsigned seed) {
  if (!has_result(cell) || (cell.point_to_point() && cell.rank > 1)) return 0;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < cell.out_count; ++i) wrong += cell.out[i] != expected(cell, i, seed) ? 1 : 0;
  // An input that a rank may still need must not have been written to.
  for (std::size_t i = 0; i < cell.in_count; ++i) wrong += cell.in[i] != value(cell.rank, i, seed) ? 1 : 0;
  return wrong;
}

inline std::size_t count_not_zero(const Cell& cell) {
  return cell.out_count - std::size_t(std::count(cell.out, cell.out + cell.out_count, 0.0f));
}

}  // namespace contest
