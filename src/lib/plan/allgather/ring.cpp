// Ring allgather: every rank passes on to its right neighbour what its left one has just brought.
//
//   4 ranks, the block that each one sends:
//     round   rank 0   rank 1   rank 2   rank 3
//       0       0        1        2        3
//       1       3        0        1        2
//       2       2        3        0        1
//
// With n the bytes of all blocks together and f = (p-1)/p:
// Steps: p-1. Bytes on the wire, per rank: fn, the least possible. Cost: (p-1)a + fnb.
// Wins: long vectors; links that dislike distant partners: every message goes to a neighbour. Limits: any p; latency
// grows with p. allgatherv: every round takes as long as the longest block under way, so one long block among short
// ones is passed on p-1 times.
// Source: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
// experience, CCPE 19(13), 2007. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/allgather/assembly.hpp"
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::allgather {
namespace {

Plan build_ring(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  return make_plan(static_cast<std::size_t>(request.size - 1), Scratch{}, [request](std::size_t index, Round& round) {
    const Blocks blocks = Blocks::of_output(request);
    const int k = static_cast<int>(index);
    const auto block = [&](int steps_left) {
      const auto b = static_cast<std::size_t>(shifted(request.rank, -steps_left, request.size));
      return blocks.slice(Buffer::output, b);
    };
    const Slice own{Buffer::input, 0, block(0).count};
    round.send(shifted(request.rank, 1, request.size), k == 0 ? own : block(k));
    round.recv(shifted(request.rank, -1, request.size), block(k + 1));
    if (k == 0 && !request.in_place) round.copy(block(0), own);
  });
}

}  // namespace

extern constinit const Algorithm ring = {
    .collective = Collective::allgather,
    .name = "ring",
    .summary = "blocks go around a ring; fewest bytes and only neighbours talk, for long vectors",
    .build = build_ring,
    .cost = {.text = "(p-1)α + fnβ", .seconds = in_steps_of_one_block},
};

}  // namespace col::plan::allgather
