// Allgather over several nodes, short blocks: every node gathers to its leader, the leaders exchange, every node is
// told.
//
// A composition (two_level/leaders.hpp): gather inside the nodes, allgather by bruck among the leaders, broadcast by
// mst inside the nodes; all on blocks in the order of nodes, which every rank puts in their places in the end. Serves
// allgatherv too.
//
//   2 nodes of 2 ranks, blocks that a rank has:
//     part          rank 0     rank 1     rank 2     rank 3
//     in the node   0 1                   2 3                   1 -> 0, 3 -> 2
//     leaders       all                   all                   0 <-> 2
//     in the node   all        all        all        all        0 -> 1, 2 -> 3
//
// Steps: 1 + log2 L + log2 N for N nodes of L ranks. Bytes on the wire, per node: the blocks of the others, each way
// about n(N-1)/N, in log2 N messages. Wins: short blocks, where messages between nodes cost most. Limits: several
// nodes; all blocks are copied once more. Source: T. Kielmann, R. Hofman, H. Bal, A. Plaat, R. Bhoedjang: MagPIe: MPI's
// collective communication operations for clustered wide area systems, PPoPP 1999. Tested by:
// tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/two_level/leaders.hpp"

namespace col::plan::allgather {
namespace {

Plan build_leaders(const PlanRequest& request) {
  const Leaders leaders(request);
  const BlocksByNode blocks(leaders.nodes(), Blocks::of_output(request));
  const int node = leaders.node();
  Composition plan;
  const Slice all = plan.take(Buffer::scratch, blocks.total());
  const std::size_t own = Blocks::of_output(request).count(static_cast<std::size_t>(request.rank));

  PlanRequest gather = leaders.in_node(Collective::gatherv, own);
  if (leaders.leads())
    plan.keep(blocks.of_ranks(leaders.nodes().ranks(node)), gather.out_counts, gather.out_displacements);
  plan.add("linear", gather, leaders.place_in_node({Buffer::input, 0, own}, blocks.of_node(all, node)));
  if (leaders.leads()) {
    const Slice of_node = blocks.of_node(all, node);
    PlanRequest exchange = leaders.between_nodes(Collective::allgatherv, of_node.count);
    plan.keep(blocks.of_nodes(), exchange.out_counts, exchange.out_displacements);
    exchange.in_place = true;
    plan.add("bruck", exchange, leaders.place_between_nodes(of_node, all));
  }
  leaders.release_in_node(all, plan);
  plan.add_round([blocks, all, except = request.in_place ? request.rank : -1](Round& round) {
    blocks.unpack(all, Buffer::output, except, round);
  });
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::allgather,
    .name = "two_level_leaders",
    .summary = "one rank of each node exchanges for all of them; short blocks, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "bruck"); },
    .build = build_leaders,
};

}  // namespace col::plan::allgather
