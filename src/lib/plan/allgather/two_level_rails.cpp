// Allgather over several nodes, long blocks: around a ring of nodes on every rail, then inside the nodes.
//
// The share of a node is the blocks of its ranks. Every node cuts the shares of the others among its own ranks
// (two_level/rails.hpp), which receive what they carry and pass it on to the next node. Last, the ranks of a node give
// each other what they carry.
//
//   2 nodes of 2 ranks, blocks 0 to 3:
//     stage         rank 0              rank 1              rank 2              rank 3
//     gather        0 -> 2, has 0 2     1 -> 3, has 1 3     2 -> 0, has 0 2     3 -> 1, has 1 3
//     in the node   has all             has all             has all             has all
//
// Steps: N for N nodes, and one for each further segment. Bytes on the wire, per node: the blocks of the other nodes
// once each way, the least possible, in whatever order the ranks are dealt to the nodes. Wins: long blocks, nodes of
// several ranks. Limits: several nodes. Source: J. L. Träff, S. Hunold: Decomposing MPI collectives for exploiting
// multi-lane communication, CLUSTER 2020. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder;
// tests/unit/plan/two_level_test.cpp.
#include "plan/two_level/carrier.hpp"

namespace col::plan::allgather {
namespace {

struct Stages {
  Carrier carrier;
  Rails::Span own;  // this rank's block in its output
  bool in_place;

  void operator()(int k, std::size_t s, Round& round) const {
    if (k == carrier.nodes().count() - 1) return carrier.spread_in_node(s, -1, round);
    const auto input = [this](const Piece& piece) {
      return Slice{Buffer::input, piece.offset - own.offset, piece.count};
    };
    carrier.ring_gather(k, s, round, input);
    if (k == 0 && s == 0 && !in_place)
      round.copy({Buffer::output, own.offset, own.count}, {Buffer::input, 0, own.count});
  }
};

Plan build_rails(const PlanRequest& request) {
  const Blocks blocks = Blocks::of_output(request);
  const Carrier carrier(request, shares_of_blocks(blocks, Nodes(request)));
  const auto rank = static_cast<std::size_t>(request.rank);
  return pipelined(carrier.segments(), carrier.nodes().count(), {},
                   Stages{carrier, {blocks.offset(rank), blocks.count(rank)}, request.in_place});
}

}  // namespace

extern constinit const Algorithm two_level_rails = {
    .collective = Collective::allgather,
    .name = "two_level_rails",
    .summary = "blocks go around a ring of nodes, on all their ranks at once; long blocks, several nodes",
    .parameters = "segment",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "ring"); },
    .build = build_rails,
};

}  // namespace col::plan::allgather
