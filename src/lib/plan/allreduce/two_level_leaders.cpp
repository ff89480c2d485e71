// Allreduce over several nodes, short vectors: every node reduces to its leader, the leaders exchange, every node is
// told.
//
// A composition (two_level/leaders.hpp): reduce by mst inside the nodes, allreduce by bde among the leaders, broadcast
// by mst inside the nodes.
//
//   2 nodes of 2 ranks, contributions that a rank has:
//     part          rank 0     rank 1     rank 2     rank 3
//     in the node   0+1                   2+3                   1 -> 0, 3 -> 2
//     leaders       all                   all                   0 <-> 2
//     in the node   all        all        all        all        0 -> 1, 2 -> 3
//
// Steps: 2 log2 L for L ranks on a node, and log2 N (+ 2, if no power of two) for N nodes. Bytes on the wire, per node:
// n log2 N each way, in that many messages. Wins: short vectors, where messages between nodes cost most.
// Limits: several nodes. Nodes are combined in the order of their lowest ranks: for operators that commute.
// Source: T. Kielmann, R. Hofman, H. Bal, A. Plaat, R. Bhoedjang: MagPIe: MPI's collective communication operations for
// clustered wide area systems, PPoPP 1999. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/two_level/leaders.hpp"

namespace col::plan::allreduce {
namespace {

Plan build_leaders(const PlanRequest& request) {
  const Leaders leaders(request);
  const Slice output{Buffer::output, 0, request.count};
  Composition plan;
  const Slice sum = leaders.fold_in_node({Buffer::input, 0, request.count}, plan);
  if (leaders.leads())
    plan.add("bde", leaders.between_nodes(Collective::allreduce, request.count),
             leaders.place_between_nodes(sum, output));
  leaders.release_in_node(output, plan);
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::allreduce,
    .name = "two_level_leaders",
    .summary = "one rank of each node exchanges for all of them; short vectors, several nodes",
    .order = FoldOrder::any,
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "bde"); },
    .build = build_leaders,
};

}  // namespace col::plan::allreduce
