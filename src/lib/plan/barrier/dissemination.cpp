// Dissemination barrier: in round k every rank tells the rank 2^k to its right, and hears from the one 2^k to its left.
//
// After round k a rank knows of the 2^(k+1) ranks that end with itself, so after L rounds of all.
//
//   4 ranks, whom each one tells:
//     round   rank 0   rank 1   rank 2   rank 3
//       0     -> 1     -> 2     -> 3     -> 0
//       1     -> 2     -> 3     -> 0     -> 1
//
// Steps: L = ceil(log2 p). Messages: pL, none with a byte in it. Cost: La.
// Wins: nearly always; no barrier takes fewer steps. Limits: none; any p.
// Source: D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization, International Journal of
// Parallel Programming 17(1), 1988. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::barrier {
namespace {

Plan build_dissemination(const PlanRequest& request) {
  const auto rounds = static_cast<std::size_t>(ceil_log2(request.size));
  return make_plan(rounds, {}, [rank = request.rank, size = request.size](std::size_t index, Round& round) {
    const int distance = 1 << index;
    round.signal(shifted(rank, distance, size));
    round.await(shifted(rank, -distance, size));
  });
}

}  // namespace

extern constinit const Algorithm dissemination = {
    .collective = Collective::barrier,
    .name = "dissemination",
    .summary = "everybody tells ranks at doubling distances; fewest steps",
    .build = build_dissemination,
    .cost = {.text = "Lα", .seconds = [](const CostTerms& t) { return t.logarithm() * t.a; }},
};

}  // namespace col::plan::barrier
