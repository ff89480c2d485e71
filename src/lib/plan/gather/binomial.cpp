// Binomial gather: blocks collect up a tree, twice as many per round.
//
// Ranks are counted from the root on. In round k, each v that is an odd multiple of 2^k hands its blocks v, v+1, … to
// v - 2^k and is done. At the root, blocks that go around the end of the buffer come in two messages. It is the
// binomial scatter backwards.
//
//   4 ranks, root 0, blocks that are sent:
//     round   rank 0   rank 1   rank 2   rank 3
//       0              1 -> 0            3 -> 2
//       1                       2,3 -> 0
//
// Steps: L = ceil(log2 p). Bytes on the wire: about n/2 per round, for n bytes in all; n(p-1)/p of them into the root.
// Cost: La + fnb, f = (p-1)/p; one a more where a message is cut in two.
// Wins: short blocks. Limits: any p, any root; equal blocks only: of gatherv, a rank inside the tree does not know the
// counts of those below it. Ranks inside it need scratch for their subtree's blocks.
// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/backwards.hpp"
#include "plan/cost_terms.hpp"

namespace col::plan::gather {

extern constinit const Algorithm binomial = {
    .collective = Collective::gather,
    .name = "binomial",
    .summary = "up a binomial tree; fewest steps, for short blocks",
    .refuse =
        [](const PlanRequest& request) { return find_algorithm(Collective::scatter, "binomial")->refuse(request); },
    .build = [](const PlanRequest& request) { return scatter_backwards("binomial", request); },
    .cost = {.text = "Lα + fnβ", .seconds = in_doubling_steps},
};

}  // namespace col::plan::gather
