// Pipelined ring allreduce: ring.cpp with every block sent in segments while it is being reduced.
//
// A block that is reduced on its way arrives in segments. As soon as one is there it is added to, while the next one is
// still travelling; of the time that a plain ring adds, only the last segment's remains. Complete blocks, which nobody
// adds to, travel in one piece.
//
//   one round, blocks of 3 segments:
//     wire      | segment 0 | segment 1 | segment 2 |
//     adding                | segment 0 | segment 1 | segment 2 |
//
//   4 ranks: the rounds and blocks of ring.cpp, for blocks of two segments (block.segment, contributions in it)
//     round   rank 0          rank 1          rank 2          rank 3
//       0     0.0:1 0.1:1     1.0:1 1.1:1     2.0:1 2.1:1     3.0:1 3.1:1
//       1     3.0:2 3.1:2     0.0:2 0.1:2     1.0:2 1.1:2     2.0:2 2.1:2     and so on
//
// Steps: 2(p-1); messages per rank: (p-1)(S+1) with S segments to a block. Bytes on the wire, per rank: 2n(p-1)/p, the
// least possible. Cost: (p-1)(S+1)a + 2fnb + fng/S, f = (p-1)/p, as long as adding is faster than the wire. Wins: long
// vectors where adding takes about as long as sending. Limits: as ring; no more than kMostSegments to a block, because
// more of them only cost latency.
// Source: P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2),
// 2009, for the ring. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include <algorithm>

#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/segments.hpp"
#include "plan/support.hpp"

namespace col::plan::allreduce {
namespace {

constexpr std::size_t kMostSegments = 256;

struct RingPipelined {
  PlanRequest request;
  Blocks blocks;
  std::size_t segments;  // to a block
  Slice raw;             // the left neighbour's bare block of round 0
  Slice partial[2];      // the block at work, by parity of the round: one is sent on while the next arrives

  int right() const { return shifted(request.rank, 1, request.size); }
  int left() const { return shifted(request.rank, -1, request.size); }
  // The block that this rank's left neighbour number `distance` began with.
  std::size_t block_of(int distance) const {
    return static_cast<std::size_t>(shifted(request.rank, -distance, request.size));
  }

  void operator()(std::size_t index, Round& round) const {
    const int last = request.size - 1;  // rounds of each half
    const int k = static_cast<int>(index);
    if (k < last) return reduce(k, round);
    round.send(right(), blocks.slice(Buffer::output, block_of(k - last - 1)));
    round.recv(left(), blocks.slice(Buffer::output, block_of(k - last)));
  }

  void reduce(int k, Round& round) const {
    const bool complete = k == request.size - 2;
    const std::size_t sent = block_of(k), arriving = block_of(k + 1);
    const Slice from = k == 0 ? blocks.slice(Buffer::input, sent) : partial[(k + 1) % 2];
    const Slice landing = k == 0 ? raw : partial[k % 2];
    const Slice own = blocks.slice(Buffer::input, arriving);
    const Slice result = blocks.slice(Buffer::output, arriving);
    const Slice sum = complete && !request.widens ? result : partial[k % 2];
    const Blocks sent_cuts = Blocks::even(blocks.count(sent), segments);
    const Blocks cuts = Blocks::even(blocks.count(arriving), segments);
    for (std::size_t s = 0; s < segments; ++s) {
      round.send(right(), from.part(sent_cuts.offset(s), sent_cuts.count(s)));
      round.recv(left(), landing.part(cuts.offset(s), cuts.count(s)));
    }
    for (std::size_t s = 0; s < segments; ++s) {
      const auto segment = [&](const Slice& of) { return of.part(cuts.offset(s), cuts.count(s)); };
      round.reduce(segment(sum), segment(landing), segment(own));
      if (complete) round.convert(segment(result), segment(sum));
    }
  }
};

Plan build_ring_pipelined(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  const Blocks blocks = Blocks::even(request.count, static_cast<std::size_t>(request.size));
  const std::size_t most = blocks.largest();
  RingPipelined ring{.request = request,
                     .blocks = blocks,
                     .segments = std::min(segments(request, most).parts(), kMostSegments),
                     .raw = {},
                     .partial = {}};
  Scratch scratch;
  ring.partial[0] = scratch.take(Buffer::wide, most);
  ring.partial[1] = scratch.take(Buffer::wide, most);
  ring.raw = raw_buffer(request) == Buffer::scratch ? scratch.take(Buffer::scratch, most) : ring.partial[0];
  return make_plan(2 * static_cast<std::size_t>(request.size - 1), scratch, ring);
}

// While adding is faster than the wire.
double allreduce_ring_pipelined(const CostTerms& t) {
  const double block = t.n / t.p;
  const double segments = std::min<double>(t.segments(block), kMostSegments);
  const double segment = block / segments;
  const double slower = std::max(t.message(segment), t.add(segment));
  return (t.p - 1) * (t.message(segment) + (segments - 1) * slower + t.add(segment) + t.message(block));
}

}  // namespace

extern constinit const Algorithm ring_pipelined = {
    .collective = Collective::allreduce,
    .name = "ring_pipelined",
    .summary = "ring that adds one segment while the next travels; for long vectors",
    .order = FoldOrder::any,
    .parameters = "segment",
    .refuse = never_refuses,
    .build = build_ring_pipelined,
    .cost = {.text = "(p-1)(S+1)α + 2fnβ + fnγ/S, adding being faster than the wire",
             .seconds = allreduce_ring_pipelined},
};

}  // namespace col::plan::allreduce
