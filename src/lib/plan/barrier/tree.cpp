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
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::barrier {
namespace {

struct Tree {
  int rank, size;

  void operator()(std::size_t index, Round& round) const {
    const int levels = ceil_log2(size);
    const int k = static_cast<int>(index);
    const bool goes_up = k < levels;
    const int weight = 1 << (goes_up ? k : 2 * levels - 1 - k);
    if (rank % weight != 0) return;
    if (rank & weight) {
      if (goes_up)
        round.signal(rank - weight);
      else
        round.await(rank - weight);
    } else if (rank + weight < size) {
      if (goes_up)
        round.await(rank + weight);
      else
        round.signal(rank + weight);
    }
  }
};

Plan build_tree(const PlanRequest& request) {
  return make_plan(2 * static_cast<std::size_t>(ceil_log2(request.size)), {},
                   Tree{.rank = request.rank, .size = request.size});
}

double barrier_tree(const CostTerms& t) {
  return 2 * t.logarithm() * t.a;
}

}  // namespace

extern constinit const Algorithm tree = {
    .collective = Collective::barrier,
    .name = "tree",
    .summary = "up and down a binomial tree; fewest messages, for ranks that share cores",
    .build = build_tree,
    .cost = {.text = "2Lα", .seconds = barrier_tree},
};

}  // namespace col::plan::barrier
