// Tree barrier: word that a subtree has come goes up a binomial tree to rank 0, word to go on comes down again.
//
//   4 ranks, who tells whom:
//     round   rank 0      rank 1   rank 2   rank 3
//       0                 -> 0              -> 2
//       1                          -> 0
//       2     -> 2
//       3     -> 1                 -> 3
//
// Steps: 2L, L = ceil(log2 p). Messages: 2(p-1), none with a byte in it. Cost: 2La.
// Wins: where messages themselves are dear (cores that the ranks share): it sends the fewest there can be. Limits:
// none; any p.
// Source: J. Mellor-Crummey, M. Scott: Algorithms for scalable synchronization on shared-memory multiprocessors, ACM
// TOCS 9(1), 1991. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/backwards.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::barrier {
namespace {

Plan build_tree(const PlanRequest& request) {
  const auto levels = static_cast<std::size_t>(ceil_log2(request.size));
  const Plan up = make_plan(levels, {}, [rank = request.rank, size = request.size](std::size_t index, Round& round) {
    const int weight = 1 << index;
    if (rank % weight != 0) return;
    if (rank & weight) return round.signal(rank - weight);
    if (rank + weight < size) round.await(rank + weight);
  });
  return then(up, backwards(up));
}

}  // namespace

extern constinit const Algorithm tree = {
    .collective = Collective::barrier,
    .name = "tree",
    .summary = "up and down a binomial tree; fewest messages, for ranks that share cores",
    .build = build_tree,
    .cost = {.text = "2Lα", .seconds = [](const CostTerms& t) { return 2 * t.logarithm() * t.a; }},
};

}  // namespace col::plan::barrier
