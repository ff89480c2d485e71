// What goes in and what must come out.
//
// Values are whole numbers below 32, so float32 sums over up to 64 ranks are exact in any order. They depend on rank,
// place and seed: data of another rank, place or iteration does not pass. (bfloat16 has values of its own.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cell.hpp"
#include "pattern_bfloat16.hpp"
#include "periodic.hpp"

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
