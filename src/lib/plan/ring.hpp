// Reducing around a ring: what allreduce's two rings and reduce_scatter's have in common.
#pragma once

#include <cstddef>

#include <col/plan.hpp>

#include "plan/blocks.hpp"
#include "plan/support.hpp"

namespace col::plan {

// In size - 1 rounds every rank passes the block that it has just added to on to its right neighbour. A block may
// travel in segments: each is added to as soon as it is there, while the next one is still on its way.
class RingReduction {
 public:
  // In round k, this rank sends the block that its left neighbour number k + `lead` began with. Takes its part of
  // `scratch`.
  RingReduction(const PlanRequest& request, const Blocks& blocks, std::size_t segments, int lead, Scratch& scratch)
      : request_(request), blocks_(blocks), segments_(segments), lead_(lead) {
    const std::size_t most = blocks.largest();
    partial_[0] = scratch.take(Buffer::wide, most);
    partial_[1] = scratch.take(Buffer::wide, most);
    raw_ = raw_buffer(request) == Buffer::scratch ? scratch.take(Buffer::scratch, most) : partial_[0];
  }

  int right() const { return shifted(request_.rank, 1, request_.size); }
  int left() const { return shifted(request_.rank, -1, request_.size); }
  // The block that this rank's left neighbour number `distance` began with.
  std::size_t block_of(int distance) const {
    return static_cast<std::size_t>(shifted(request_.rank, -distance, request_.size));
  }

  // Round k. What arrives in the last one is complete with this rank's own contribution, and becomes `result`.
  void reduce(int k, const Slice& result, Round& round) const {
    const bool complete = k == request_.size - 2;
    const std::size_t sent = block_of(k + lead_), arriving = block_of(k + lead_ + 1);
    const Slice from = k == 0 ? blocks_.slice(Buffer::input, sent) : partial_[(k + 1) % 2];
    const Slice landing = k == 0 ? raw_ : partial_[k % 2];
    const Slice own = blocks_.slice(Buffer::input, arriving);
    const Slice sum = complete && !request_.widens ? result : partial_[k % 2];
    const Blocks sent_cuts = Blocks::even(blocks_.count(sent), segments_);
    const Blocks cuts = Blocks::even(blocks_.count(arriving), segments_);
    for (std::size_t s = 0; s < segments_; ++s) {
      round.send(right(), from.part(sent_cuts.offset(s), sent_cuts.count(s)));
      round.recv(left(), landing.part(cuts.offset(s), cuts.count(s)));
    }
    for (std::size_t s = 0; s < segments_; ++s) {
      const auto segment = [&](const Slice& of) { return of.part(cuts.offset(s), cuts.count(s)); };
      round.reduce(segment(sum), segment(landing), segment(own));
      if (complete) round.convert(segment(result), segment(sum));
    }
  }

 private:
  PlanRequest request_;
  Blocks blocks_;
  std::size_t segments_;  // to a block
  int lead_;
  Slice raw_;         // the left neighbour's bare block of round 0
  Slice partial_[2];  // the block at work, by parity of the round: one is sent on while the next arrives
};

// Allreduce: reduces around the ring, then passes the complete blocks, which nobody adds to, around it once more.
inline Plan ring_allreduce(const PlanRequest& request, std::size_t segments) {
  if (request.size == 1) return alone(request);
  const Blocks blocks = Blocks::even(request.count, static_cast<std::size_t>(request.size));
  Scratch scratch;
  const RingReduction ring(request, blocks, segments, 0, scratch);
  const int last = request.size - 1;  // rounds of each half
  return make_plan(2 * static_cast<std::size_t>(last), scratch, [=](std::size_t index, Round& round) {
    const int k = static_cast<int>(index);
    if (k < last) return ring.reduce(k, blocks.slice(Buffer::output, ring.block_of(k + 1)), round);
    round.send(ring.right(), blocks.slice(Buffer::output, ring.block_of(k - last - 1)));
    round.recv(ring.left(), blocks.slice(Buffer::output, ring.block_of(k - last)));
  });
}

}  // namespace col::plan
