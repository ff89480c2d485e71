// Minimum-spanning-tree allreduce: reduce to rank 0 (reduce/mst.cpp), then broadcast from it (broadcast/mst.cpp).
//
// Both halve the range of ranks: a range's value is that of its two halves combined, lower ranks on the left.
//
//   4 ranks:
//     round   sends                   who holds what afterwards
//       0     1 -> 0, 2 -> 3          0: 0+1, 3: 2+3
//       1     3 -> 0                  0: (0+1)+(2+3), complete
//       2     0 -> 3                  0 and 3: complete
//       3     0 -> 1, 3 -> 2          all: complete
//
// Steps: 2L, L = ceil(log2 p). Bytes on the wire: 2n(p-1) in all, 2Ln at most on a rank. Cost: 2L(a + nb) + Lng.
// Wins: short vectors where links are half duplex, or where a network suffers from p messages at a time; otherwise bde
// takes half the steps. Limits: any p.
// Source: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
// experience, CCPE 19(13), 2007.
// Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::reduce {
extern const Algorithm mst;
}
namespace col::plan::broadcast {
extern const Algorithm mst;
}

namespace col::plan::allreduce {
namespace {

Plan build_mst(const PlanRequest& request) {
  PlanRequest up = request;
  up.collective = Collective::reduce;
  up.root = 0;
  PlanRequest down = request;
  down.collective = Collective::broadcast;
  down.root = 0;
  return then(reduce::mst.build(up), broadcast::mst.build(down));
}

}  // namespace

extern constinit const Algorithm mst = {
    .collective = Collective::allreduce,
    .name = "mst",
    .summary = "reduce and broadcast on minimum spanning trees; fewest messages, for short vectors",
    .order = FoldOrder::contiguous,
    .build = build_mst,
    .cost = {.text = "2L(α + nβ) + Lnγ",
             .seconds =
                 [](const CostTerms& t) { return 2 * t.logarithm() * t.message(t.n) + t.logarithm() * t.add(t.n); }},
};

}  // namespace col::plan::allreduce
