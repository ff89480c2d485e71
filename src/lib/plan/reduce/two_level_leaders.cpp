// Reduce over several nodes, short vectors: every node reduces to its leader, and the leaders to the root.
//
// A composition (two_level/leaders.hpp) of two reduces by mst. The root leads its own node.
//
//   2 nodes of 2 ranks, root 0, contributions that a rank has:
//     part          rank 0     rank 1     rank 2     rank 3
//     in the node   0+1                   2+3                   1 -> 0, 3 -> 2
//     leaders       all                                         2 -> 0
//
// Steps: log2 L + log2 N for N nodes of L ranks. Bytes on the wire, per node: n out, up to n log2 N into the root's.
// Wins: short vectors, where messages between nodes cost most. Limits: several nodes; any root. For operators that
// commute. Source: T. Kielmann, R. Hofman, H. Bal, A. Plaat, R. Bhoedjang: MagPIe: MPI's collective communication
// operations for clustered wide area systems, PPoPP 1999. Tested by: tests/unit/plan/algorithms_test.cpp, with every
// other builder.
#include "plan/two_level/leaders.hpp"

namespace col::plan::reduce {
namespace {

Plan build_leaders(const PlanRequest& request) {
  const Leaders leaders(request);
  Composition plan;
  const Slice sum = leaders.fold_in_node({Buffer::input, 0, request.count}, plan);
  if (leaders.leads())
    plan.add("mst", leaders.between_nodes(Collective::reduce, request.count),
             leaders.place_between_nodes(sum, {Buffer::output, 0, request.count}));
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::reduce,
    .name = "two_level_leaders",
    .summary = "one rank of each node sends for all of them; short vectors, several nodes",
    .order = FoldOrder::any,
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "mst"); },
    .build = build_leaders,
};

}  // namespace col::plan::reduce
