// Allreduce over several nodes in rank order, short vectors: leaders exchange the inputs of their nodes, and each adds
// up all of them.
//
// A composition (two_level/ordered.hpp): gather inside the nodes, allgather by bruck among the leaders, broadcast by
// mst inside the nodes. Nodes may have any ranks.
//
//   2 nodes of 2 ranks, dealt in turn, inputs that a rank has:
//     part          rank 0     rank 1     rank 2     rank 3
//     in the node   0 2        1 3                              2 -> 0, 3 -> 1
//     leaders       0 1 2 3    0 1 2 3                          0 <-> 1
//     in the node   sum        sum        sum        sum        0 -> 2, 1 -> 3
//
// Steps: 1 + log2 L + log2 N for N nodes of L ranks. Bytes on the wire, per node: the inputs of the others, each way
// about pn(N-1)/N, in log2 N messages. Wins: a few elements, where messages between nodes cost most. Limits: several
// nodes; a leader adds p inputs. Source: T. Kielmann, R. Hofman, H. Bal, A. Plaat, R. Bhoedjang: MagPIe: MPI's
// collective communication operations for clustered wide area systems, PPoPP 1999, of the operators that are not
// associative. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder;
// tests/unit/plan/two_level_test.cpp.
#include "plan/two_level/ordered.hpp"

namespace col::plan::allreduce {
namespace {

Plan build_ordered(const PlanRequest& request) {
  const Leaders leaders(request);
  const Slice output{Buffer::output, 0, request.count};
  Composition plan;
  const Inputs inputs(request, leaders, false, plan);
  if (leaders.leads()) {
    const Slice sum = plan.take(Buffer::wide, request.count);
    plan.add_round([=](Round& round) {
      left_fold(
          request.size, [&](int rank) { return inputs.of(rank); }, sum, output, request.widens, round);
    });
  }
  leaders.release_in_node(output, plan);
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_ordered = {
    .collective = Collective::allreduce,
    .name = "two_level_ordered",
    .summary = "leaders of nodes exchange all inputs, and add in rank order; a few elements, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "one_shot"); },
    .build = build_ordered,
};

}  // namespace col::plan::allreduce
