// Ring allreduce: reduce-scatter around the ring, then allgather around the ring.
//
// The vector is cut into p blocks. In p-1 rounds every rank passes the block it has just added to on to its right
// neighbour, so that block b, which starts at rank b, has been around and is complete at rank b-1; in p-1 more rounds
// the complete blocks go around once more.
//
//   4 ranks, what each one sends (block, number of contributions in it):
//     round   rank 0   rank 1   rank 2   rank 3
//       0     0:1      1:1      2:1      3:1
//       1     3:2      0:2      1:2      2:2
//       2     2:3      3:3      0:3      1:3
//       3     1:4      2:4      3:4      0:4      complete blocks from here on
//       4     0:4      1:4      2:4      3:4
//       5     3:4      0:4      1:4      2:4
//
// Steps: 2(p-1). Bytes on the wire, per rank: 2n(p-1)/p, the least possible. Cost: 2(p-1)a + 2fnb + fng, f = (p-1)/p.
// Wins: long vectors, few ranks, or links that dislike distant partners. Limits: any p; latency grows with p; the order
// of addition differs from block to block, so the operator must commute.
// Source: P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2),
// 2009. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/ring.hpp"
#include "plan/cost_terms.hpp"

namespace col::plan::allreduce {
namespace {

Plan build_ring(const PlanRequest& request) {
  return ring_allreduce(request, 1);
}

}  // namespace

extern constinit const Algorithm ring = {
    .collective = Collective::allreduce,
    .name = "ring",
    .summary = "reduce-scatter and allgather around a ring; fewest bytes, for long vectors",
    .order = FoldOrder::any,
    .build = build_ring,
    .cost = {.text = "2(p-1)α + 2fnβ + fnγ",
             .seconds = [](const CostTerms& t) { return (t.p - 1) * 2 * t.message(t.n / t.p) + t.f() * t.add(t.n); }},
};

}  // namespace col::plan::allreduce
