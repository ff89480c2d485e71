// Scatter over several nodes, short blocks: the root to the leaders of the nodes, these to the ranks of their nodes.
//
// A composition (two_level/leaders.hpp) of two linear scatters, on blocks that the root has put in the order of nodes.
// The root leads its own node.
//
//   2 nodes of 2 ranks, root 0, blocks that are sent:
//     part          rank 0       rank 1     rank 2     rank 3
//     leaders       2,3 -> 2
//     in the node   1 -> 1                  3 -> 3
//
// Steps: 2. Bytes on the wire: the blocks of the other nodes once, in one message to each node. Wins: short blocks;
// long ones do as well by linear, which sends the same bytes between nodes. Limits: several nodes; equal blocks only:
// of scatterv, a leader does not know the counts of its node. Source: T. Kielmann, R. Hofman, H. Bal, A. Plaat, R.
// Bhoedjang: MagPIe: MPI's collective communication operations for clustered wide area systems, PPoPP 1999. Tested by:
// tests/unit/plan/algorithms_test.cpp, with every other builder.
#include "plan/two_level/leaders.hpp"

namespace col::plan::scatter {
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
  if (is_root) plan.add_round([blocks, all](Round& round) { blocks.pack(all, Buffer::input, round); });
  if (leaders.leads()) {
    PlanRequest hand_out = leaders.between_nodes(Collective::scatterv, blocks.node_count(node));
    hand_out.in_place = true;
    if (is_root) {
      hand_out.in_counts = plan.keep(blocks.node_counts());
      hand_out.in_displacements = plan.keep(blocks.node_starts());
    }
    plan.add("linear", hand_out, leaders.place_between_nodes(all, of_node));
  }
  plan.add("linear", leaders.in_node(Collective::scatter, request.count),
           leaders.place_in_node(of_node, {Buffer::output, 0, request.count}));
  return plan.done();
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::scatter,
    .name = "two_level_leaders",
    .summary = "one rank of each node receives for all of them; short blocks, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "binomial"); },
    .build = build_leaders,
};

}  // namespace col::plan::scatter
