// By what the ranks of a group choose between ways that give the same bits (docs/decisions/0063-one-tuner.md).
//
// Ranks try in the program's own calls what only these show: whether one copy by the kernel is faster than slots
// (native/kernel_trials.hpp), and how a rank writes what others read (core/kernels/store_choice.hpp). All else follows
// from the caches and the number of ranks. Rank 0 decides it when the group is made, and writes it into the segment
// before the others go on. They read it there, so all ranks choose alike, whatever their own environment says.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace col::shm_backend {

class Segment;

// Calls that the caches hold use no more of a slot.
inline constexpr std::size_t kMostCachedSlot = std::size_t{256} << 10;

// COL_CMA.
enum class KernelCopies : std::uint32_t { automatic, off, on };

// Calls that one copy by the kernel can serve. How large one is: its vector, or its longest block.
enum class KernelShape : std::uint32_t {
  vector_of_one,   // broadcast
  vector_to_one,   // reduce
  vector_of_each,  // allreduce
  blocks_of_one,   // scatter
  blocks_to_one,   // gather
  block_of_each,   // allgather
  blocks_of_each,  // alltoall
};
inline constexpr std::size_t kKernelShapes = 7;
constexpr bool is_of_blocks(KernelShape shape) noexcept {
  return shape > KernelShape::vector_of_each;
}

struct KernelCall {
  KernelShape shape;
  std::size_t bytes;
};

struct Tuning {
  KernelCopies copies = KernelCopies::automatic;
  std::uint32_t tries = 1;       // whether ranks try anything: COL_CALIBRATE
  std::uint32_t looks = 0;       // polls of a rank before its first yield
  std::uint64_t small_slot = 0;  // of each slot, so much is taken from the machine at the beginning
  std::uint64_t slot = 0;        // how much of each slot calls use that are larger than a small slot
  std::uint64_t least_part = 0;  // of what goes from or to one rank, a step moves at least so much
  std::uint64_t fold_all = 0;    // every rank folds all of a vector up to this size, and else a slice
  std::uint64_t streamed = 0;    // calls that touch more go past the caches with what they write
  std::uint64_t wide_slot = 0;   // and use so much of each slot; others may, too
  std::uint64_t two_waits = 0;   // two waits for all ranks take as long as a copy of so many bytes
  std::uint64_t crowd = 1;       // ranks for each processor, at least 1
  std::array<std::uint64_t, kKernelShapes> kernel{};  // bit b - 1: the kernel may serve sizes of b bits
  std::uint64_t before_trials = 0;  // bytes of a kind of call that go through slots before the kernel is tried

  bool goes_by_kernel(KernelShape shape, std::size_t bytes) const noexcept {
    return bytes > 0 && ((kernel[static_cast<std::size_t>(shape)] >> (std::bit_width(bytes) - 1)) & 1) != 0;
  }
};

// ---- What rank 0 decides, by pure functions: tests try any shape

struct GroupShape {
  int size = 1;
  int processors = 1;          // that the ranks have together
  std::size_t small_slot = 0;  // as the segment has them
  std::size_t largest_slot = 0;
  std::size_t cache_bytes = 0;  // of the second level, of one processor
  std::size_t last_caches = 0;  // bytes of the last level, of all processors; 0: not known
};

// From a group's segment. Large slots are for groups whose ranks could all take them.
GroupShape shape_of(const Segment& segment, int processors);

struct TuningSettings {
  KernelCopies copies = KernelCopies::automatic;  // COL_CMA
  bool tries = true;                              // COL_CALIBRATE

  // Throws invalid_argument, which names the variable.
  static TuningSettings of_environment();
};

Tuning decide(const GroupShape& shape, const TuningSettings& settings);

// For a group that is made in the memory of another one.
Tuning decide_as(const Tuning& parent, const GroupShape& shape);

// For the log and Group::explain(): "slots of 256 KiB, …".
std::string in_words(const Tuning& tuning);

}  // namespace col::shm_backend
