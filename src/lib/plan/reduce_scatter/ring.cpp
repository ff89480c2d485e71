// Ring reduce-scatter: every block goes around the ring once, collects all contributions, and ends at its owner.
//
//   4 ranks, what each one sends (block, number of contributions in it):
//     round   rank 0   rank 1   rank 2   rank 3
//       0     3:1      0:1      1:1      2:1
//       1     2:2      3:2      0:2      1:2
//       2     1:3      2:3      3:3      0:3      the last contribution is the owner's
//
// With n the bytes of all blocks together and f = (p-1)/p:
// Steps: p-1. Bytes on the wire, per rank: fn, the least possible; where partial results are wider, all but the first
// round's in the wide type. Cost: (p-1)a + fnb + fng.
// Wins: long vectors; links that dislike distant partners. Needs no more memory than two or three blocks. Limits: any
// p; latency grows with p; the order of addition differs from block to block, so the operator must commute.
// Source: P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2),
// 2009. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/ring.hpp"
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::reduce_scatter {
namespace {

Plan build_ring(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  Scratch scratch;
  const Blocks blocks = Blocks::of_input(request);
  const Slice result{Buffer::output, 0, blocks.count(static_cast<std::size_t>(request.rank))};
  const RingReduction ring(request, blocks, 1, 1, scratch);
  // The last round adds this rank's own block: in place, that is the memory of the result.
  return make_plan(
      static_cast<std::size_t>(request.size - 1), scratch,
      [ring, result](std::size_t index, Round& round) { ring.reduce(static_cast<int>(index), result, round); });
}

}  // namespace

extern constinit const Algorithm ring = {
    .collective = Collective::reduce_scatter,
    .name = "ring",
    .summary = "blocks collect contributions around a ring; fewest bytes and little memory, for long vectors",
    .order = FoldOrder::any,
    .build = build_ring,
    .cost = {.text = "(p-1)α + fnβ + fnγ", .seconds = reduce_scatter_in_steps},
};

}  // namespace col::plan::reduce_scatter
