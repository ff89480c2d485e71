// Allreduce over several nodes in rank order, long vectors: sums go from node to node on every rail, and the result
// goes back.
//
// The nodes form a chain, in the order of their ranks. What a rank carries (two_level/rails.hpp) it gets from the
// others of its node, and adds it, in order, to what came from the node before. The last node has the result; it goes
// back along the chain, and last the ranks of a node give each other what they carry. Segments are at different stages
// at the same time.
//
//   2 nodes of 2 ranks, halves 0 and 1 of the vector:
//     stage         rank 0         rank 1         rank 2           rank 3
//     node 0        0 of 0+1       1 of 0+1
//     node 1        0 -> 2         1 -> 3         0 of 0+1+2+3     1 of 0+1+2+3
//     back                                        0 -> 0           1 -> 1
//     in the node   has all        has all        has all          has all
//
// Steps: 2N for N nodes, and one for each further segment. Bytes on the wire, per node: 2n each way at most, and n for
// two nodes. In rank order, this is the least possible: a node needs the sum of the nodes before it, and the result.
// Wins: long vectors in rank order, for which direct sends the wire each input. Limits: several nodes, each of which
// has neighbouring ranks. Of 16-bit floats, sums travel as float32. Memory: an L-th of the vector, for L ranks on a
// node. Source: J. Worringen: Pipelining and overlapping for MPI collective operations, LCN 2003, for the chain; the
// rails as two_level_rails. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder;
// tests/unit/plan/two_level_test.cpp.
#include "plan/two_level/carrier.hpp"

namespace col::plan::allreduce {
namespace {

struct OrderedChain {
  Carrier carrier;

  void operator()(int k, std::size_t s, Round& round) const {
    const int n = carrier.nodes().count();
    const auto result = [](const Piece& piece) { return piece.in(Buffer::output); };
    if (k < n) return carrier.fold_in_order(k, s, round, result);
    if (k == 2 * n - 1) return carrier.spread_in_node(s, -1, round);
    const int from = 2 * n - 1 - k;  // the node that has it
    if (carrier.node() == from) carrier.send(from - 1, 0, s, round, result);
    if (carrier.node() == from - 1) carrier.receive(from, 0, s, round, result);
  }
};

Plan build_ordered_chain(const PlanRequest& request) {
  Carrier carrier(request, {{.blocks = {{0, request.count}}}});
  Scratch scratch;
  carrier.take_ordered_memory(scratch);
  return pipelined(carrier.segments(), 2 * carrier.nodes().count(), scratch, OrderedChain{carrier});
}

}  // namespace

extern constinit const Algorithm two_level_chain = {
    .collective = Collective::allreduce,
    .name = "two_level_chain",
    .summary = "sums go from node to node in rank order, and back, on all their ranks; long vectors, several nodes",
    .parameters = "segment",
    .refuse = [](const PlanRequest& request) { return refuse_dealt_nodes(request, "direct", "ps_sharded"); },
    .build = build_ordered_chain,
};

}  // namespace col::plan::allreduce
