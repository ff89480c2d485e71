// Reduce-scatter over several nodes in rank order, long blocks: sums go from node to node on every rail, and the last
// node sends the others their blocks.
//
// The nodes form a chain, in the order of their ranks. What a rank carries (two_level/rails.hpp) it gets from the
// others of its node, and adds it, in order, to what came from the node before. Segments are at different stages at the
// same time. Serves reduce_scatterv too.
//
//   2 nodes of 2 ranks, blocks 0 to 3:
//     stage         rank 0              rank 1              rank 2                  rank 3
//     node 0        blocks 0 2 of 0+1   blocks 1 3 of 0+1
//     node 1        0 2 -> 2            1 3 -> 3            0 2 of 0+1+2+3          1 3 of 0+1+2+3
//     to owners     has 0               has 1               0 -> 0, has 2           1 -> 1, has 3
//
// Steps: N+1 for N nodes, and one for each further segment. Bytes on the wire, per node: n and its own blocks in, n
// out. In rank order, this is the least possible: sums of all blocks must pass every node. Wins: long blocks in rank
// order, for which direct sends the wire each input. Limits: several nodes, each of which has neighbouring ranks. Of
// 16-bit floats, sums travel as float32. Source: as allreduce. Tested by: tests/unit/plan/algorithms_test.cpp, with
// every other builder; tests/unit/plan/two_level_test.cpp.
#include "plan/two_level/carrier.hpp"

namespace col::plan::reduce_scatter {
namespace {

struct OrderedChain {
  Carrier carrier;
  std::size_t own;  // where this rank's block begins in its input
  Slice finished;   // on the last node: results on their way to other nodes, of two segments by turns

  void operator()(int k, std::size_t s, Round& round) const {
    const int last = carrier.nodes().count() - 1;
    const auto in_output = [this](const Piece& piece) {
      return Slice{Buffer::output, piece.offset - own, piece.count};
    };
    const auto result = [&](const Piece& piece) {
      if (piece.share == last) return in_output(piece);
      return finished.part(s % 2 * carrier.carried() + carrier.place_of(piece, s), piece.count);
    };
    if (k <= last) return carrier.fold_in_order(k, s, round, result);
    if (carrier.node() != last) return carrier.receive(last, carrier.node(), s, round, in_output);
    for (int node = 0; node < last; ++node) carrier.send(node, node, s, round, result);
  }
};

Plan build_ordered_chain(const PlanRequest& request) {
  const Blocks blocks = Blocks::of_input(request);
  Carrier carrier(request, shares_of_blocks(blocks, Nodes(request)));
  const int n = carrier.nodes().count();
  Scratch scratch;
  carrier.take_ordered_memory(scratch);
  const Slice finished = scratch.take(Buffer::scratch, carrier.node() == n - 1 ? 2 * carrier.carried() : 0);
  return pipelined(carrier.segments(), n + 1, scratch,
                   OrderedChain{carrier, blocks.offset(static_cast<std::size_t>(request.rank)), finished});
}

}  // namespace

extern constinit const Algorithm two_level_chain = {
    .collective = Collective::reduce_scatter,
    .name = "two_level_chain",
    .summary =
        "sums go from node to node in rank order, on all their ranks, and to their owners; long blocks, several nodes",
    .parameters = "segment",
    .refuse = [](const PlanRequest& request) { return refuse_dealt_nodes(request, "direct", "direct"); },
    .build = build_ordered_chain,
};

}  // namespace col::plan::reduce_scatter
