// What a collective moves in each of its steps, between the memory of one rank and the slots of all.
//
// A vector (allreduce, reduce, scan, broadcast, allgather, gather) is cut into chunks, one for each step. A slot holds
// the chunk with the layout of the vector. If every rank folds one slice of it, the result is in the slice that its
// owner need not put there. Collectives with one block for each rank (reduce_scatter, scatter, alltoall) cut all blocks
// into chunks in the same way, and a slot holds one chunk of each block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include <col/request.hpp>

#include "backend/shm/native/slot_writing.hpp"
#include "backend/shm/native/steps.hpp"
#include "backend/shm/segment/layout.hpp"
#include "core/kernels/few_fold.hpp"
#include "core/kernels/fold.hpp"
#include "core/kernels/store_choice.hpp"

namespace col::shm_backend {

// Consecutive elements of a vector.
struct ElementRange {
  std::size_t begin = 0, count = 0;
};

// Slices and chunks begin at whole cache lines, so that no two ranks write one line.
constexpr std::size_t kAlignment = 64;

constexpr std::size_t aligned_up(std::size_t count, std::size_t element_bytes) noexcept {
  const std::size_t unit = std::max<std::size_t>(1, kAlignment / element_bytes);
  return (count + unit - 1) / unit * unit;
}

// The part of a vector that one of `size` ranks works on.
constexpr ElementRange slice_of(int rank, int size, std::size_t count, std::size_t element_bytes) noexcept {
  const auto n = static_cast<std::size_t>(size);
  const std::size_t each = aligned_up((count + n - 1) / n, element_bytes);
  const std::size_t begin = std::min(count, static_cast<std::size_t>(rank) * each);
  return {begin, std::min(each, count - begin)};
}

// The block of a rank in a vector of all ranks' blocks. `counts`: of all blocks; empty if each is `equal`.
inline ElementRange block_of(int rank, std::span<const std::size_t> counts, std::size_t equal) noexcept {
  const auto r = static_cast<std::size_t>(rank);
  if (counts.empty()) return {r * equal, equal};
  return {std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0}), counts[r]};
}

// How many bytes all ranks together read and write in a call, whose vector or longest block has `bytes`.
constexpr std::size_t touched_by_all(const CollectiveRow& row, std::size_t bytes, int size) noexcept {
  const auto n = static_cast<std::size_t>(size);
  const auto side = [&](Extent extent, bool only_root) {
    if (extent == Extent::nothing) return std::size_t{0};
    return (extent == Extent::blocks ? n : 1) * bytes * (only_root ? 1 : n);
  };
  return side(row.in, row.in_on_root) + side(row.out, row.out_on_root);
}

class Movement {
 public:
  // `length`: elements of the vector, or of the longest block, equal on all ranks. It is length_of(), or, if no rank
  // alone knows it (private counts), what the ranks have told one another. `chunk_bytes`: how much of a vector, or of
  // all blocks, one step should move; at most what a slot holds. `stores`: into the output. `is_beyond`: what the
  // caches hold. Requires: `request`, `area` and `writing` outlive it; `sources` has room for one pointer for each
  // rank.
  Movement(const Request& request, Form form, const Area& area, int rank, int size, std::size_t length,
           std::size_t chunk_bytes, core::Stores stores, bool is_beyond, SlotWriting& writing,
           std::span<const std::byte*> sources);

  std::uint64_t steps() const noexcept { return steps_; }
  // The most that a step has in the slot of one rank.
  std::size_t slot_bytes() const noexcept { return slot_data_bytes(0); }
  // The same, or the next power of two.
  std::size_t part_bytes() const noexcept { return part_; }
  // Whether it matters how slots are written.
  bool is_large() const noexcept { return choice_ != nullptr && slot_bytes() >= core::StoreChoice::kLeastTimed; }
  // A premul_sum: the input of this rank goes through its slot too.
  bool is_scaled() const noexcept { return scaled_; }

  // What moves within this rank's own memory. Called once.
  bool has_own() const noexcept {
    const bool is_part = row_.out == Extent::blocks || by_blocks_;
    return is_part && !row_.reduces() && (!row_.rooted || is_root());
  }
  void move_own() const;
  // `own`: this rank's header of the step.
  void put(std::uint64_t index, std::uint64_t step, StepHeader& own) const {
    if (few_bytes_ == 0) {
      if (length_ != 0) put_more(index, step);
      return;
    }
    const std::byte* const from = row_.in == Extent::nothing ? output() : input();
    if (kept_bytes_ != 0) copy_few(kept_, from);
    copy_few(own.inline_data, from);
  }
  void fold(std::uint64_t index, std::uint64_t step) const {
    if (few_fold_.kernel == nullptr) return fold_more(index, step);
    fold_few(few_fold_, step);
  }
  void take(std::uint64_t index, std::uint64_t step, int peer) const {
    if (few_bytes_ == 0) {
      if (length_ != 0) take_more(index, step, peer);
      return;
    }
    const std::size_t begin = row_.out == Extent::blocks ? static_cast<std::size_t>(peer) * few_bytes_ : 0;
    if (row_.out != Extent::nothing) copy_few(output() + begin, area_.header(peer, step).inline_data);
  }

  // Elements of the vector, or of the longest block. Requires: no private counts.
  static std::size_t length_of(const Request& request, int size);
  // The type of what is moved.
  static DType dtype_of(const Request& request, int rank);

 private:
  bool is_root() const noexcept { return request_.root == rank_; }
  ElementRange chunk(std::uint64_t index, std::size_t length) const noexcept;
  // The part of a chunk that a rank folds, relative to the chunk.
  ElementRange slice(int rank, const ElementRange& chunk) const noexcept {
    return slice_of(rank, size_, chunk.count, in_size_);
  }
  ElementRange block(int rank, std::span<const std::size_t> counts) const noexcept;
  std::size_t slot_data_bytes(std::uint64_t index) const noexcept;
  std::byte* slot(int rank, std::uint64_t index, std::uint64_t step) const noexcept;
  // The place in a slot of the chunk of a rank's block.
  std::size_t place(int rank) const noexcept { return static_cast<std::size_t>(rank) * chunk_ * in_size_; }
  // Mostly it is one number.
  void copy_few(std::byte* to, const std::byte* from) const noexcept {
    if (few_bytes_ == sizeof(std::uint64_t))
      std::memcpy(to, from, sizeof(std::uint64_t));
    else
      std::memcpy(to, from, few_bytes_);
  }
  [[gnu::always_inline]] void fold_few(const core::FewFold& few, std::uint64_t step) const {
    const std::byte* theirs = area_.header(0, step).inline_data;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(size_); ++rank, theirs += area_.header_stride()) {
      asm("" : "+r"(theirs));  // one by one: what it takes to make vectors of pointers is not for so few
      sources_[rank] = theirs;
    }
    sources_[static_cast<std::size_t>(rank_)] = kept_bytes_ != 0 ? kept_ : input();
    few(sources_.data(), static_cast<std::size_t>(size_), output(), length_);
  }
  // Not inlined: what moves few bytes stays short.
  [[gnu::noinline]] void put_more(std::uint64_t index, std::uint64_t step) const;
  [[gnu::noinline]] void fold_more(std::uint64_t index, std::uint64_t step) const;
  [[gnu::noinline]] void take_more(std::uint64_t index, std::uint64_t step, int peer) const;
  void put_chunk(std::uint64_t index, std::uint64_t step) const;
  void reduce(std::span<const std::byte*> inputs, core::FoldTarget out, core::FoldTarget shown,
              std::size_t count) const;
  void fold_chunk(std::uint64_t index, std::uint64_t step) const;
  // These two return how many bytes they have written.
  std::size_t write_chunk(std::byte* to, std::uint64_t index, core::Stores stores) const;
  std::size_t copy_in(std::byte* to, std::size_t begin, std::size_t count, core::Stores stores) const;
  core::StoreChoice::Terms terms() const noexcept {
    const std::size_t parts = writing_.reach > part_ ? writing_.reach / part_ : 0;
    return {readers_, static_cast<unsigned>(kSlots * parts)};
  }

  void copy_out(std::size_t begin, const std::byte* from, std::size_t count) const;
  const std::byte* input() const noexcept { return static_cast<const std::byte*>(request_.in.data); }
  std::byte* output() const noexcept { return static_cast<std::byte*>(request_.out.data); }

  const Request& request_;
  const CollectiveRow& row_;
  const Form form_;
  const Area& area_;
  const int rank_, size_;
  const core::Stores stores_;
  SlotWriting& writing_;
  const SlotWriting::Readers readers_;
  const std::span<const std::byte*> sources_;
  // A call that reduces moves elements, any other bytes: an opaque element may be longer than a slot.
  DType dtype_ = DType::uint8;
  std::size_t units_ = 1;  // for one element of the call
  // The input is multiplied on its way into the slot, also for this rank; narrow floats are float32 there.
  bool scaled_ = false, wide_ = false;
  bool is_tree_ = false;  // the order is the tree's,
  bool by_tree_ = false;  // and another one than that of ranks
  // It folds its own input from its slot, too: that is multiplied there, or another rank may have the same memory and
  // its result there already. Of short data it keeps a copy: the others look at the slot's line all the time.
  bool own_in_slot_ = false;
  std::size_t kept_bytes_ = 0;
  alignas(16) mutable std::byte kept_[kPartBytes];
  bool by_blocks_ = false;                 // one chunk of each block in a slot
  std::size_t in_size_ = 1, size_of_ = 1;  // bytes of an element in a slot, and in the user's memory
  std::size_t length_ = 0;                 // elements of the vector, or of the longest block
  std::size_t chunk_ = 0;                  // elements of it in a step
  std::uint64_t steps_ = 1;
  // A vector that one step moves as it is, in bytes: nothing to cut, and nothing to multiply. Zero: not so simple.
  std::size_t simple_bytes_ = 0;
  std::size_t few_bytes_ = 0;            // the same, if it fits into a header; else zero
  core::FewFold few_fold_;               // of it; no kernel: it is not so simple
  core::FewFold few_in_tree_;            // the same for a call in the tree's order
  core::StoreChoice* choice_ = nullptr;  // how slots are written; null: in the usual way
  std::size_t part_ = 0;                 // of a slot, that a step uses: a power of two
};

}  // namespace col::shm_backend
