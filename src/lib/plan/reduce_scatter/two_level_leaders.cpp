// Reduce-scatter over several nodes, short blocks: every node reduces to its leader, the leaders exchange, and every
// leader hands out the blocks of its node.
//
// A composition (two_level/leaders.hpp): reduce by mst inside the nodes, reduce-scatter by halving among the leaders,
// scatter inside the nodes; all on blocks in the order of nodes. Serves reduce_scatterv too.
//
//   2 nodes of 2 ranks, blocks that a rank has (contributions in them):
//     part          rank 0       rank 1     rank 2       rank 3
//     in the node   all (0+1)               all (2+3)               1 -> 0, 3 -> 2
//     leaders       0 1 (all)               2 3 (all)               0 <-> 2
//     in the node   0            1          2            3          0 -> 1, 2 -> 3
//
// Steps: 1 + log2 L + log2 N for N nodes of L ranks. Bytes on the wire, per node: about n(N-1)/N each way, in log2 N
// messages. Wins: short blocks, where messages between nodes cost most. Limits: several nodes; inputs are copied once.
// For operators that commute. Source: T. Kielmann, R. Hofman, H. Bal, A. Plaat, R. Bhoedjang: MagPIe: MPI's collective
// communication operations for clustered wide area systems, PPoPP 1999.
// Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/two_level/leaders.hpp"

namespace col::plan::reduce_scatter {
namespace {

Plan build_leaders(const PlanRequest& request) {
  const Leaders leaders(request);
  const BlocksByNode blocks(leaders.nodes(), Blocks::of_input(request));
  const int node = leaders.node();
  const std::size_t own = Blocks::of_input(request).count(static_cast<std::size_t>(request.rank));
  Composition plan;
  const Slice packed = plan.take(raw_buffer(request), blocks.total());
  plan.add_round([blocks, packed](Round& round) { blocks.pack(packed, Buffer::input, round); });
  const Slice sum = leaders.fold_in_node(packed, plan);
  const Slice mine = plan.take(Buffer::scratch, leaders.leads() ? blocks.of_node(packed, node).count : 0);
  PlanRequest scatter = leaders.in_node(Collective::scatterv, own);
  if (leaders.leads()) {
    PlanRequest exchange = leaders.between_nodes(Collective::reduce_scatterv, mine.count);
    plan.keep(blocks.of_nodes(), exchange.in_counts, exchange.in_displacements);
    plan.add("halving", exchange, leaders.place_between_nodes(sum, mine));
    plan.keep(blocks.of_ranks(leaders.nodes().ranks(node)), scatter.in_counts, scatter.in_displacements);
  }
  plan.add("linear", scatter, leaders.place_in_node(mine, {Buffer::output, 0, own}));
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::reduce_scatter,
    .name = "two_level_leaders",
    .summary = "one rank of each node exchanges for all of them; short blocks, several nodes",
    .order = FoldOrder::any,
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "halving"); },
    .build = build_leaders,
};

}  // namespace col::plan::reduce_scatter
