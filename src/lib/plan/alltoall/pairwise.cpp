// Pairwise alltoall: in round k every rank sends to the rank k above and receives from the rank k below.
//
//   4 ranks, who sends to whom:
//     round 0   0->1  1->2  2->3  3->0
//     round 1   0->2  1->3  2->0  3->1
//     round 2   0->3  1->0  2->1  3->2
//
// In place, the block that comes in round k lies where that for the rank k below was, and that one goes in round p-k.
// So the half of the blocks that go late are copied to scratch in a round of their own first; the others go before
// they are overwritten. (All of them, in an alltoallv that receives other counts than it sends.)
//
// With n the bytes of a rank's blocks together and f = (p-1)/p:
// Steps: p-1. Bytes on the wire, per rank: fn, the least possible. Cost: (p-1)a + fnb.
// Wins: long blocks: every link and port has one message at a time. Limits: any p; latency grows with p; alltoallv: a
// round takes as long as its longest block.
// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/alltoall/outbox.hpp"
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::alltoall {
namespace {

Plan build_pairwise(const PlanRequest& request) {
  Scratch scratch;
  // The middle one of an even p comes and goes in the same round: it is late.
  const Outbox outbox(request, std::max(1, (request.size + 1) / 2), scratch);
  const std::size_t before = outbox.saves() ? 1 : 0;
  const auto rounds = static_cast<std::size_t>(std::max(1, request.size - 1));
  return make_plan(before + rounds, scratch, [request, outbox, before](std::size_t index, Round& round) {
    if (index < before) return outbox.save(round);
    const Blocks blocks = Blocks::of_output(request);
    const int k = static_cast<int>(index - before) + 1;
    if (k < request.size) {
      const int from = shifted(request.rank, -k, request.size);
      round.send(shifted(request.rank, k, request.size), outbox.block(k));
      round.recv(from, blocks.slice(Buffer::output, from));
    }
    if (k == 1) outbox.keep_own(round, blocks.slice(Buffer::output, request.rank));
  });
}

}  // namespace

extern constinit const Algorithm pairwise = {
    .collective = Collective::alltoall,
    .name = "pairwise",
    .summary = "one partner to send to and one to receive from per round; for long blocks",
    .build = build_pairwise,
    .cost = {.text = "(p-1)α + fnβ", .seconds = in_steps_of_one_block},
};

}  // namespace col::plan::alltoall
