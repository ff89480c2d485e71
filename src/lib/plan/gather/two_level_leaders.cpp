// Gather over several nodes, short blocks: every node gathers to its leader, and the leaders to the root.
//
// A composition (two_level/leaders.hpp) of two linear gathers, on blocks in the order of nodes, which the root puts in
// their places in the end. The root leads its own node.
//
//   2 nodes of 2 ranks, root 0, blocks that are sent:
//     part          rank 0     rank 1     rank 2       rank 3
//     in the node              1 -> 0                  3 -> 2
//     leaders                             2,3 -> 0
//
// Steps: 2. Bytes on the wire: the blocks of the other nodes once, in one message of each node. Wins: short blocks;
// long ones do as well by linear, which sends the same bytes between nodes. Limits: several nodes; equal blocks only:
// of gatherv, a leader does not know the counts of its node. Source: T. Kielmann, R. Hofman, H. Bal, A. Plaat, R.
// Bhoedjang: MagPIe: MPI's collective communication operations for clustered wide area systems, PPoPP 1999. Tested by:
// tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/two_level/leaders.hpp"

namespace col::plan::gather {
namespace {

Plan build_leaders(const PlanRequest& request) {
  const Leaders leaders(request);
  const BlocksByNode blocks(leaders.nodes(), Blocks::equal(request.count, static_cast<std::size_t>(request.size)));
  const int node = leaders.node();
  const bool is_root = request.rank == request.root;
  Composition plan;
  const Slice all = plan.take(Buffer::scratch, is_root ? blocks.total() : 0);
  const Slice of_node =
      is_root ? blocks.of_node(all, node) : plan.take(Buffer::scratch, leaders.leads() ? blocks.node_count(node) : 0);
  plan.add("linear", leaders.in_node(Collective::gather, request.count),
           leaders.place_in_node({Buffer::input, 0, request.count}, of_node));
  if (!leaders.leads()) return plan.done();
  PlanRequest collect = leaders.between_nodes(Collective::gatherv, blocks.node_count(node));
  collect.in_place = true;
  if (is_root) {
    collect.out_counts = plan.keep(blocks.node_counts());
    collect.out_displacements = plan.keep(blocks.node_starts());
  }
  plan.add("linear", collect, leaders.place_between_nodes(of_node, all));
  if (is_root) {
    plan.add_round([blocks, all, except = request.in_place ? request.rank : -1](Round& round) {
      blocks.unpack(all, Buffer::output, except, round);
    });
  }
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::gather,
    .name = "two_level_leaders",
    .summary = "one rank of each node sends for all of them; short blocks, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "binomial"); },
    .build = build_leaders,
};

}  // namespace col::plan::gather
