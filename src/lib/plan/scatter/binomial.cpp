// Binomial scatter: blocks go down a tree, half as many per round.
//
// Ranks are counted from the root on. A rank that has the blocks of its subtree sends the upper half to the rank that
// heads the upper half, and goes on with the lower. At the root, blocks that go around the end of the buffer leave in
// two messages.
//
//   4 ranks, root 0, blocks that are sent:
//     round   rank 0     rank 1   rank 2   rank 3
//       0     2,3 -> 2
//       1     1 -> 1              3 -> 3
//
// Steps: L = ceil(log2 p). Bytes on the wire: about n/2 per round, for n bytes in all; n(p-1)/p of them out of the
// root. Cost: La + fnb, f = (p-1)/p. Wins: short blocks. Limits: any p, any root; equal blocks only: of scatterv, a
// rank inside the tree does not know the counts of those below it. Ranks inside it need scratch for their subtree's
// blocks. Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH,
// IJHPCA 19(1), 2005. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/binomial_blocks.hpp"
#include "plan/cost_terms.hpp"

namespace col::plan::scatter {

extern constinit const Algorithm binomial = {
    .collective = Collective::scatter,
    .name = "binomial",
    .summary = "down a binomial tree; fewest steps, for short blocks",
    .refuse = refuse_binomial,
    .build = [](const PlanRequest& request) { return build_binomial(request, false); },
    .cost = {.text = "Lα + fnβ", .seconds = in_doubling_steps},
};

}  // namespace col::plan::scatter
