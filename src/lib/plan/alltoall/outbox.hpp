// Blocks that a rank sends in an alltoall, and where they are.
#pragma once

#include <algorithm>
#include <cstddef>

#include <col/plan.hpp>

#include "plan/blocks.hpp"
#include "plan/support.hpp"

namespace col::plan::alltoall {

// True if every block of the input is in the same place as its counterpart in the output. In place, a block that
// arrives then overwrites exactly one block. Only this rank may know the answer.
inline bool same_layout(const PlanRequest& request) {
  return std::ranges::equal(request.in_counts, request.out_counts) &&
         std::ranges::equal(request.in_displacements, request.out_displacements);
}

// In place, arriving blocks overwrite blocks that are not sent yet. So the blocks that are sent late are copied first:
// those for ranks `late` or more above this one. (All blocks are copied if blocks to send and to receive overlap in any
// other way.)
class Outbox {
 public:
  // Takes its part of `scratch`, if it needs one.
  Outbox(const PlanRequest& request, int late, Scratch& scratch)
      : rank_(request.rank),
        size_(request.size),
        own_stays_(request.in_place && same_layout(request)),
        late_(!request.in_place ? size_
              : own_stays_      ? late
                                : 0),
        blocks_(Blocks::of_input(request)),
        saved_(static_cast<std::size_t>(size_ - late_),
               [this](std::size_t i) { return blocks_.count(saved_block(i)); }),
        region_(scratch.take(Buffer::scratch, saved_.total())) {}

  bool saves() const { return late_ < size_; }
  // Makes the copy, in a round before anything is sent or received.
  void save(Round& round) const {
    for (std::size_t i = 0; i < saved_.parts(); ++i)
      round.copy(saved_.range(region_, i, i + 1), blocks_.slice(Buffer::input, saved_block(i)));
  }
  // The block for the rank that is `above` ranks above this one.
  Slice block(int above) const {
    if (above < late_) return blocks_.slice(Buffer::input, shifted(rank_, above, size_));
    const auto i = static_cast<std::size_t>(above - late_);
    return saved_.range(region_, i, i + 1);
  }
  // The block that stays on this rank. In place, it may already be there.
  void keep_own(Round& round, Slice to) const {
    if (!own_stays_) round.copy(to, block(0));
  }

 private:
  std::size_t saved_block(std::size_t i) const {
    return static_cast<std::size_t>(shifted(rank_, late_ + static_cast<int>(i), size_));
  }

  int rank_, size_;
  bool own_stays_;
  int late_;  // size_: no block is copied
  Blocks blocks_;
  Packed saved_;
  Slice region_;
};

}  // namespace col::plan::alltoall
