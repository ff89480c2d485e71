// Linear alltoall: every rank sends all its blocks at once, straight to their receivers.
//
//   4 ranks, round 0, the only one:
//     rank 0 -> 1, 2, 3     rank 1 -> 2, 3, 0     rank 2 -> 3, 0, 1     rank 3 -> 0, 1, 2
//
// Every rank begins with the one above it, so that nobody is everyone's first target. In place, all blocks but the own
// one are copied to scratch in a round of their own first.
//
// With n the bytes of a rank's blocks together and f = (p-1)/p:
// Steps: 1. Messages, per rank: p-1. Bytes on the wire, per rank: fn, the least possible. Cost with one port:
// (p-1)a + fnb; where messages to different ranks overlap (shared memory, several ports), as little as a + fnb.
// Wins: few ranks; shared memory; alltoallv with very unequal blocks, as no long one holds up others. Limits: any p;
// p(p-1) messages at once flood a network.
// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/alltoall/outbox.hpp"
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::alltoall {
namespace {

Plan build_linear(const PlanRequest& request) {
  Scratch scratch;
  const Outbox outbox(request, 1, scratch);
  const std::size_t before = outbox.saves() ? 1 : 0;
  return make_plan(before + 1, scratch, [request, outbox, before](std::size_t index, Round& round) {
    if (index < before) return outbox.save(round);
    const Blocks blocks = Blocks::of_output(request);
    for (int k = 1; k < request.size; ++k) {
      const int from = shifted(request.rank, -k, request.size);
      round.send(shifted(request.rank, k, request.size), outbox.block(k));
      round.recv(from, blocks.slice(Buffer::output, from));
    }
    outbox.keep_own(round, blocks.slice(Buffer::output, request.rank));
  });
}

}  // namespace

extern constinit const Algorithm linear = {
    .collective = Collective::alltoall,
    .name = "linear",
    .summary = "all blocks at once, straight to their receivers; for few ranks, shared memory, very unequal blocks",
    .build = build_linear,
    .cost = {.text = "(p-1)α + fnβ", .seconds = in_steps_of_one_block},
};

}  // namespace col::plan::alltoall
