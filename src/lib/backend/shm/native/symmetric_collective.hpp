// Collectives on symmetric memory (SymmetricHeap), which all ranks can reach: each rank reads the inputs of others in
// place, and writes results directly to where they belong.
//
// First, the ranks tell one another where their buffers are. If the places suit, all do their share, and wait for one
// another once more. If not, the call goes through the slots. All ranks decide alike, because all know the same.
//
//   allreduce, reduce    rank r folds slice r of all inputs, into the outputs of all, or of the root
//   reduce_scatter       rank r folds block r of all inputs into its output
//   broadcast            rank r copies slice r of the root's to all others
//   allgather, alltoall  every rank copies what it wants from the others' inputs
//   gather               every rank copies its input to the root's output
//   scatter              every rank copies its block from the root's input
//
// No rank reads what another one writes in this: only one rank writes a slice or block, and no other rank reads it.
// (For an alltoall this is true only if input and output differ: in place, it goes through the slots.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <col/request.hpp>

#include "backend/shm/native/lending.hpp"
#include "backend/shm/native/movement.hpp"
#include "backend/shm/native/symmetric_memory.hpp"
#include "core/kernels/fold.hpp"

namespace col::shm_backend {

class SymmetricCollective {
 public:
  using Rest = std::function<void()>;

  // Whether a call may go this way, wherever its buffers are. All ranks get the same answer.
  static bool suits(const Request& request, int size, const Tuning& tuning) noexcept;
  static Whereabouts whereabouts(const Request& request, const SymmetricHeap& heap);

  // Requires: `all` is ordered by rank; `sources` has room for one pointer for each rank; both and `request` outlive
  // it.
  SymmetricCollective(const Request& request, const SymmetricHeap& heap, const Tuning& tuning, int rank, int size,
                      std::span<const Presence> all, std::span<const std::byte*> sources);

  // Whether the places of the buffers suit. All ranks get the same answer.
  bool possible() const noexcept { return possible_; }
  // Does this rank's share. It calls `rest` from time to time, which may throw. Requires: possible().
  void run(const Rest& rest);

 private:
  void find_memory(std::span<const Presence> all, const SymmetricHeap& heap);
  bool is_reachable(std::span<const Presence> all) const;
  ElementRange slice(std::size_t count) const noexcept { return slice_of(rank_, size_, count, size_of_); }
  void fold_into(std::span<std::byte* const> targets, ElementRange from, std::size_t shift, const Rest& rest);
  void copy_slice(const Rest& rest);
  void copy_block(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, const Rest& rest) const;

  std::byte* own_output() const noexcept { return outputs_[static_cast<std::size_t>(rank_)]; }

  const Request& request_;
  const int rank_, size_;
  const std::span<const std::byte*> sources_;
  std::vector<std::byte*> inputs_, outputs_;  // by rank; null if they cannot be reached
  DType dtype_ = DType::uint8;
  std::size_t size_of_ = 1;
  core::Stores stores_ = core::Stores::cached;
  bool possible_ = false;
};

}  // namespace col::shm_backend
