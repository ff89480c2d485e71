// What is measured: an operation, its size, and the buffers of one rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace contest {

enum class Operation {
  barrier,
  allreduce,
  allreduce_in_place,
  allreduce_bfloat16,  // the only one whose elements are not float32
  broadcast,
  reduce,
  allgather,
  reduce_scatter,
  gather,
  scatter,
  alltoall,
  send,
  round_trip,
  split,          // in two groups, which end again
  split_barrier,  // the same, with a barrier in the new group
  // An allreduce beside work of the processor that takes at least three times as long.
  then_compute,    // the blocking call, then the work
  beside_compute,  // start, work, wait
  beside_tests     // start, work with 100 tests on the way, wait
};

inline constexpr std::array<std::string_view, 18> kOperationNames = {
    "barrier",        "allreduce",   "allreduce_in_place", "allreduce_bfloat16",
    "broadcast",      "reduce",      "allgather",          "reduce_scatter",
    "gather",         "scatter",     "alltoall",           "send",
    "round_trip",     "split",       "split_barrier",      "then_compute",
    "beside_compute", "beside_tests"};

inline std::string_view to_string(Operation operation) {
  return kOperationNames[std::size_t(operation)];
}

inline std::optional<Operation> operation_from_string(std::string_view name) {
  const auto* found = std::find(kOperationNames.begin(), kOperationNames.end(), name);
  if (found == kOperationNames.end()) return std::nullopt;
  return Operation(found - kOperationNames.begin());
}

// Messages there and back in one timed iteration: one alone is too short for the clock.
inline constexpr int kRoundTrips = 8;

// Sizes are those of nccl-tests: `bytes` is the larger of a rank's two buffers. An allgather of 1 MiB has a block of
// 1 MiB / n from every rank. A block is at least one element, so tiny sizes grow to one element a rank.
struct Cell {
  Operation operation = Operation::barrier;
  int rank = 0;
  int size = 1;
  std::size_t bytes = 0;  // as asked for
  std::size_t element_bytes = sizeof(float);
  std::size_t count = 0;      // elements of the larger buffer
  std::size_t block = 0;      // elements of one rank's block
  std::size_t in_count = 0;   // of this rank's input; 0 where it has none
  std::size_t out_count = 0;  // of this rank's output; 0 where it has none
  float* in = nullptr;
  float* out = nullptr;  // the only buffer of operations in place, broadcast among them

  // The same buffers where elements are of 16 bits.
  std::uint16_t* in16() const { return reinterpret_cast<std::uint16_t*>(in); }
  std::uint16_t* out16() const { return reinterpret_cast<std::uint16_t*>(out); }

  bool in_place() const { return operation == Operation::allreduce_in_place || operation == Operation::broadcast; }
  bool has_data() const {
    return operation != Operation::barrier && operation != Operation::split && operation != Operation::split_barrier;
  }
  bool computes() const { return operation >= Operation::then_compute; }
  bool point_to_point() const { return operation == Operation::send || operation == Operation::round_trip; }
  // What one measured time is divided by.
  int repeats() const { return operation == Operation::round_trip ? 2 * kRoundTrips : 1; }
};

// Of the group that a rank comes to by a split: one of the even ranks, and one of the odd.
inline int members_of_half(const Cell& cell) {
  return (cell.size + 1 - cell.rank % 2) / 2;
}

inline Cell make_cell(Operation operation, std::size_t bytes, int rank, int size) {
  Cell cell;
  cell.operation = operation;
  cell.rank = rank;
  cell.size = size;
  if (!cell.has_data()) return cell;
  cell.bytes = bytes;
  if (operation == Operation::allreduce_bfloat16) cell.element_bytes = sizeof(std::uint16_t);
  const std::size_t asked = std::max<std::size_t>(1, bytes / cell.element_bytes);
  cell.block = std::max<std::size_t>(1, asked / std::size_t(size));
  const bool root = rank == 0;
  const std::size_t blocks = cell.block * std::size_t(size);
  switch (operation) {
    case Operation::allgather:
      cell.in_count = cell.block, cell.out_count = blocks;
      break;
    case Operation::gather:
      cell.in_count = cell.block, cell.out_count = root ? blocks : 0;
      break;
    case Operation::reduce_scatter:
      cell.in_count = blocks, cell.out_count = cell.block;
      break;
    case Operation::scatter:
      cell.in_count = root ? blocks : 0, cell.out_count = cell.block;
      break;
    case Operation::alltoall:
      cell.in_count = cell.out_count = blocks;
      break;
    case Operation::reduce:
      cell.in_count = asked, cell.out_count = root ? asked : 0;
      break;
    case Operation::send:
      (root ? cell.in_count : cell.out_count) = asked;
      break;
    case Operation::broadcast:
    case Operation::allreduce_in_place:
      cell.out_count = asked;
      break;
    default:
      cell.in_count = cell.out_count = asked;
      break;
  }
  const bool in_blocks = operation >= Operation::allgather && operation <= Operation::alltoall;
  cell.count = in_blocks ? blocks : asked;
  return cell;
}

}  // namespace contest
