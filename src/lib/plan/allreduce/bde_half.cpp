// Bidirectional exchange over links that carry one direction at a time: each exchange of bde.cpp in two rounds.
//
// The lower rank of two partners sends while the upper one receives, then the other way round. Written so, with
// blocking calls, the exchange costs as much as the minimum spanning trees of mst.cpp: this is what full duplex is
// worth. For teaching.
//
//   4 ranks:
//     round   sends                      who holds what afterwards
//       0     0 -> 1, 2 -> 3
//       1     1 -> 0, 3 -> 2             0 and 1: 0+1, 2 and 3: 2+3
//       2     0 -> 2, 1 -> 3
//       3     2 -> 0, 3 -> 1             all: 0+1+2+3
//
// Steps: 2 log2 p; otherwise 2 floor(log2 p) + 2. Bytes on the wire, per rank: n log2 p (folded: up to 2n more). Cost:
// 2L(a + nb) + Lng, folded 2 floor(log2 p)(a + nb) + floor(log2 p)ng + 2(a + nb) + ng. Wins: never against bde.
// Limits: any p.
// Source: as bde.cpp. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/allreduce/doubling.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::allreduce {
namespace {

Plan build_bde_half(const PlanRequest& request) {
  return build_doubling(request, Duplex::half);
}

double allreduce_bde_half(const CostTerms& t) {
  const double folding = t.folds() ? 2 * t.message(t.n) + t.add(t.n) : 0;
  return t.floor_logarithm() * (2 * t.message(t.n) + t.add(t.n)) + folding;
}

}  // namespace

extern constinit const Algorithm bde_half = {
    .collective = Collective::allreduce,
    .name = "bde_half",
    .summary = "bde with half-duplex messages, twice the steps; for teaching",
    .order = FoldOrder::contiguous,
    .parameters = "",
    .refuse = never_refuses,
    .build = build_bde_half,
    .cost = {.text = "F(2α + 2nβ + nγ); folded: + 2(α + nβ) + nγ", .seconds = allreduce_bde_half},
};

}  // namespace col::plan::allreduce
