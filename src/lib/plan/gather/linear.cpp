// Linear gather: every rank sends its block to the root, which receives each where it belongs. Serves gatherv too.
//
//   4 ranks, root 0, blocks that are sent:
//     round   rank 0   rank 1   rank 2   rank 3
//       0              1 -> 0   2 -> 0   3 -> 0
//
// Steps: 1, of p-1 messages. Bytes on the wire: n(p-1)/p for n bytes in all, each block once. Cost: (p-1)a + fnb,
// f = (p-1)/p.
// Wins: long blocks, since none travels twice; blocks of differing length. Limits: none; any p, any root.
// Source: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
// experience, Concurrency and Computation 19(13), 2007. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::gather {
namespace {

Plan build_linear(const PlanRequest& request) {
  return make_plan(1, {}, [request](std::size_t, Round& round) {
    const Slice input{Buffer::input, 0, request.count};
    if (request.rank != request.root) return round.send(request.root, input);
    const Blocks blocks = Blocks::of_output(request);
    const auto block = [&blocks](int rank) { return blocks.slice(Buffer::output, rank); };
    for (int by = 1; by < request.size; ++by) {
      const int rank = shifted(request.root, by, request.size);
      round.recv(rank, block(rank));
    }
    if (!request.in_place) round.copy(block(request.root), input);
  });
}

}  // namespace

extern constinit const Algorithm linear = {
    .collective = Collective::gather,
    .name = "linear",
    .summary = "every rank sends to the root; for long blocks and for gatherv",
    .build = build_linear,
    .cost = {.text = "(p-1)α + fnβ", .seconds = in_steps_of_one_block},
};

}  // namespace col::plan::gather
