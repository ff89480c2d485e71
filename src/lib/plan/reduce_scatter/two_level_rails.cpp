// Reduce-scatter over several nodes, long blocks: inside the nodes, then around a ring of nodes on every rail.
//
// The share of a node is the blocks of its ranks. Every node cuts the shares of the others among its own ranks
// (two_level/rails.hpp); of its own share, each rank carries its own block. A rank adds up what it carries of its
// node's inputs; then the shares go around the ring of nodes, and every node adds to them.
//
//   2 nodes of 2 ranks, blocks 0 to 3:
//     stage         rank 0              rank 1              rank 2              rank 3
//     in the node   blocks 0 2 of 0+1   blocks 1 3 of 0+1   blocks 0 2 of 2+3   blocks 1 3 of 2+3
//     reduce        2 -> 2, has 0       3 -> 3, has 1       0 -> 0, has 2       1 -> 1, has 3
//
// Steps: N for N nodes, and one for each further segment. Bytes on the wire, per node: the blocks of the other nodes
// once each way, the least possible, in whatever order the ranks are dealt to the nodes. Wins: long blocks, nodes of
// several ranks. Limits: several nodes. Of narrow floats, sums travel as float32. Source: J. L. Träff, S. Hunold:
// Decomposing MPI collectives for exploiting multi-lane communication, CLUSTER 2020. Tested by:
// tests/unit/plan/algorithms_test.cpp, with every other builder; tests/unit/plan/two_level_test.cpp.
#include "plan/two_level/carrier.hpp"

namespace col::plan::reduce_scatter {
namespace {

struct Stages {
  Carrier carrier;
  std::size_t own;  // where this rank's block begins in its input

  void operator()(int k, std::size_t s, Round& round) const {
    if (k == 0) return carrier.fold_in_node(s, round);
    carrier.ring_reduce(k - 1, s, round, [this](const Piece& piece) {
      return Slice{Buffer::output, piece.offset - own, piece.count};
    });
  }
};

Plan build_rails(const PlanRequest& request) {
  const Blocks blocks = Blocks::of_input(request);
  Carrier carrier(request, shares_of_blocks(blocks, Nodes(request)));
  const int n = carrier.nodes().count();
  Scratch scratch;
  carrier.take_memory(n, n - 1, carrier.ring(-1), scratch);
  return pipelined(carrier.segments(), n, scratch,
                   Stages{carrier, blocks.offset(static_cast<std::size_t>(request.rank))});
}

}  // namespace

extern constinit const Algorithm two_level_rails = {
    .collective = Collective::reduce_scatter,
    .name = "two_level_rails",
    .summary = "nodes reduce each other's blocks around a ring, all their ranks at once; long blocks, several nodes",
    .order = FoldOrder::any,
    .parameters = "segment",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "ring"); },
    .build = build_rails,
};

}  // namespace col::plan::reduce_scatter
