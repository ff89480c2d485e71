// Central barrier: everybody tells rank 0, which tells everybody when the last one has.
//
//   4 ranks, who tells whom:
//     round   rank 0          rank 1   rank 2   rank 3
//       0                     -> 0     -> 0     -> 0
//       1     -> 1, 2, 3
//
// Steps: 2, of p-1 messages each. Messages: 2(p-1), none with a byte in it. Cost: 2(p-1)a.
// Wins: two or three ranks. Limits: none; any p. It is also what a parameter server's barrier does.
// Source: J. Mellor-Crummey, M. Scott: Algorithms for scalable synchronization on shared-memory multiprocessors, ACM
// TOCS 9(1), 1991. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::barrier {
namespace {

Plan build_central(const PlanRequest& request) {
  const std::size_t rounds = request.size > 1 ? 2 : 0;
  return make_plan(rounds, {}, [rank = request.rank, size = request.size](std::size_t index, Round& round) {
    const bool comes = index == 0;
    if (rank != 0) return comes ? round.signal(0) : round.await(0);
    for (int other = 1; other < size; ++other) comes ? round.await(other) : round.signal(other);
  });
}

}  // namespace

extern constinit const Algorithm central = {
    .collective = Collective::barrier,
    .name = "central",
    .summary = "everybody tells rank 0 and hears back; for very few ranks",
    .build = build_central,
    .cost = {.text = "2(p-1)α", .seconds = [](const CostTerms& t) { return 2 * (t.p - 1) * t.a; }},
};

}  // namespace col::plan::barrier
