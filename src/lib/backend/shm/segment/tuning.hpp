// By what the ranks of a group choose between ways that give the same bits.
//
// Rank 0 decides it when the group is made (calibration/), and writes it into the segment before the others go on. They
// read it there, so all ranks choose alike, whatever their own environment says.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace col::shm_backend {

// The sizes of slots between which a group chooses for calls that the caches hold (docs/decisions/0019).
inline constexpr std::array<std::size_t, 3> kSlotSizes = {std::size_t{64} << 10, std::size_t{128} << 10,
                                                          std::size_t{256} << 10};

// What a machine takes, in picoseconds: per KiB, or for a start (a call, a wait). Zero: not known.
struct Costs {
  std::uint64_t line = 0;   // for a line of memory, from one processor to another
  std::uint64_t yield = 0;  // for sched_yield() when nobody else wants the processor
  std::uint64_t look = 0;   // for one look at a flag, and a pause
  // From the memory of one thread to that of another: through a slot, and by one copy of the kernel's.
  std::uint64_t slot_start = 0, slot_kib = 0;
  std::uint64_t best_kib = 0;  // through slots, in the best way for much (core/kernels/store_choice.hpp)
  std::uint64_t kernel_start = 0, kernel_kib = 0;
  std::uint64_t exchange_kib = 0;                           // by the kernel, where both threads copy at a time
  std::array<std::uint64_t, kSlotSizes.size()> step_kib{};  // two threads exchange data by slots of kSlotSizes
};

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
  enum class Source : std::uint32_t { off, unknown, measured, kept };
  Source source = Source::off;
  KernelCopies copies = KernelCopies::automatic;  // what rank 0's environment says
  std::uint32_t looks = 0;                        // polls of a rank before its first yield
  std::uint64_t small_slot = 0;                   // of each slot, so much is taken from the machine at the beginning
  std::uint64_t slot = 0;                         // how much of each slot calls use that are larger than a small slot
  std::uint64_t least_part = 0;                   // of what goes from or to one rank, a step moves at least so much
  std::uint64_t fold_all = 0;                     // every rank folds all of a vector up to this size, and else a slice
  std::uint64_t streamed = 0;                     // calls that touch more go past the caches with what they write
  std::uint64_t wide_slot = 0;                    // and use so much of each slot; others may, too
  std::uint64_t two_waits = 0;                    // two waits for all ranks take as long as a copy of so many bytes
  std::uint64_t crowd = 1;                        // ranks for each processor, at least 1
  std::array<std::uint64_t, kKernelShapes> kernel{};  // bit b - 1: the kernel may serve sizes of b bits faster
  std::uint64_t before_trials = 0;  // bytes of a kind of call that go through slots before the kernel is tried
  Costs costs;

  bool goes_by_kernel(KernelShape shape, std::size_t bytes) const noexcept {
    return bytes > 0 && ((kernel[static_cast<std::size_t>(shape)] >> (std::bit_width(bytes) - 1)) & 1) != 0;
  }
};

}  // namespace col::shm_backend
