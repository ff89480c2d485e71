// Scan and exscan over several nodes in rank order, short vectors: leaders exchange the inputs of their nodes, and
// every rank adds up those that concern it.
//
// A composition (two_level/ordered.hpp): gather inside the nodes, allgather by bruck among the leaders, broadcast by
// mst of all inputs inside the nodes. Nodes may have any ranks.
//
//   2 nodes of 2 ranks, dealt in turn, inputs that a rank has:
//     part          rank 0     rank 1     rank 2     rank 3
//     in the node   0 2        1 3                              2 -> 0, 3 -> 1
//     leaders       0 1 2 3    0 1 2 3                          0 <-> 1
//     in the node   0 1 2 3    0 1 2 3    0 1 2 3    0 1 2 3    0 -> 2, 1 -> 3
//     result        0          0+1        0+1+2      0+1+2+3
//
// Steps: 1 + log2 L + log2 N for N nodes of L ranks. Bytes on the wire, per node: the inputs of the others, each way
// about pn(N-1)/N, in log2 N messages. Wins: a few elements, ranks that are dealt to the nodes in turn; linear crosses
// from node to node once for each of them. Limits: several nodes. Source: as allreduce. Tested by:
// tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/two_level/ordered.hpp"

namespace col::plan::scan {
namespace {

Plan build_ordered(const PlanRequest& request) {
  const bool is_exclusive = row_of(request.collective).folds == Folds::below_rank;
  const Leaders leaders(request);
  const int end = request.rank + (is_exclusive ? 0 : 1);  // of the ranks that concern this one
  Composition plan;
  const Inputs inputs(request, leaders, true, plan);
  leaders.release_in_node(inputs.all(), plan);
  const Slice sum = plan.take(Buffer::wide, request.count);
  plan.add_round([=](Round& round) {
    const Slice output{Buffer::output, 0, request.count};
    if (end > 0)
      left_fold(
          end, [&](int rank) { return inputs.of(rank); }, sum, output, request.widens, round);
  });
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_ordered = {
    .collective = Collective::scan,
    .name = "two_level_ordered",
    .summary = "leaders of nodes exchange all inputs, every rank adds in rank order; a few elements, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "linear"); },
    .build = build_ordered,
};

}  // namespace col::plan::scan
