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
#include "plan/ring.hpp"

namespace col::plan::allreduce {
namespace {

constexpr std::size_t kMostSegments = 256;

Plan build_ring_pipelined(const PlanRequest& request) {
  const std::size_t most = Blocks::even(request.count, static_cast<std::size_t>(request.size)).largest();
  return ring_allreduce(request, std::min(segments(request, most).parts(), kMostSegments));
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
    .build = build_ring_pipelined,
    .cost = {.text = "(p-1)(S+1)α + 2fnβ + fnγ/S, adding being faster than the wire",
             .seconds = allreduce_ring_pipelined},
};

}  // namespace col::plan::allreduce
