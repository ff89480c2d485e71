// Barrier over several nodes: every node tells its leader, the leaders tell each other, every node hears from its
// leader.
//
// A composition (two_level/leaders.hpp): up the tree of tree.cpp inside the nodes, dissemination among the leaders,
// down the same tree.
//
//   2 nodes of 2 ranks, who tells whom:
//     part          rank 0     rank 1     rank 2     rank 3
//     in the node              -> 0                  -> 2
//     leaders       -> 2                  -> 0
//     in the node   -> 1                  -> 3
//
// Steps: 2 log2 L + log2 N for N nodes of L ranks. Messages between nodes: log2 N for each node. Wins: nodes of several
// ranks. Limits: several nodes.
// Source: J. Mellor-Crummey, M. Scott: Algorithms for scalable synchronization on shared-memory multiprocessors, ACM
// TOCS 9(1), 1991. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/backwards.hpp"
#include "plan/two_level/leaders.hpp"

namespace col::plan::barrier {
namespace {

Plan build_leaders(const PlanRequest& request) {
  const Leaders leaders(request);
  const PlanRequest in_node = leaders.in_node(Collective::barrier, 0);
  const Plan tree = find_algorithm(Collective::barrier, "tree")->build(in_node);
  const std::size_t half = in_node.size > 1 ? tree.rounds / 2 : 0;
  const Plan up{.rounds = half, .generate = tree.generate};
  Composition plan;
  plan.add(up, leaders.place_in_node({}, {}));
  if (leaders.leads())
    plan.add("dissemination", leaders.between_nodes(Collective::barrier, 0), leaders.place_between_nodes({}, {}));
  plan.add(backwards(up), leaders.place_in_node({}, {}));
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::barrier,
    .name = "two_level_leaders",
    .summary = "one rank of each node tells the other nodes; nodes of several ranks",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "dissemination"); },
    .build = build_leaders,
};

}  // namespace col::plan::barrier
