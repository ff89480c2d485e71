// Linear gather: every rank sends its block to the root, which receives each where it belongs. It is the linear scatter
// backwards. Serves gatherv too.
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
#include "plan/backwards.hpp"
#include "plan/cost_terms.hpp"

namespace col::plan::gather {

extern constinit const Algorithm linear = {
    .collective = Collective::gather,
    .name = "linear",
    .summary = "every rank sends to the root; for long blocks and for gatherv",
    .build = [](const PlanRequest& request) { return scatter_backwards("linear", request); },
    .cost = {.text = "(p-1)α + fnβ", .seconds = in_steps_of_one_block},
};

}  // namespace col::plan::gather
