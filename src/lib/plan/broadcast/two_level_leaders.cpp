// Broadcast over several nodes, short vectors: the root to the leaders of the nodes, these to the ranks of their nodes.
//
// A composition (two_level/leaders.hpp) of two broadcasts by mst. The root leads its own node.
//
//   2 nodes of 2 ranks, root 0:
//     part          rank 0     rank 1     rank 2     rank 3
//     leaders       0 -> 2                has it
//     in the node   0 -> 1     has it     2 -> 3     has it
//
// Steps: log2 L + log2 N for N nodes of L ranks. Bytes on the wire, per node: n in, up to n log2 N out of the root's.
// Wins: short vectors, where messages between nodes cost most. Limits: several nodes; any root. Source: T. Kielmann, R.
// Hofman, H. Bal, A. Plaat, R. Bhoedjang: MagPIe: MPI's collective communication operations for clustered wide area
// systems, PPoPP 1999. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/two_level/leaders.hpp"

namespace col::plan::broadcast {
namespace {

Plan build_leaders(const PlanRequest& request) {
  const Leaders leaders(request);
  const Slice output{Buffer::output, 0, request.count};
  Composition plan;
  if (leaders.leads())
    plan.add("mst", leaders.between_nodes(Collective::broadcast, request.count),
             leaders.place_between_nodes({}, output));
  leaders.release_in_node(output, plan);
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::broadcast,
    .name = "two_level_leaders",
    .summary = "one rank of each node receives for all of them; short vectors, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "mst"); },
    .build = build_leaders,
};

}  // namespace col::plan::broadcast
