// Reduce over several nodes in rank order, long vectors: sums go from node to node on every rail, and to the root.
//
// The nodes form a chain, in the order of their ranks. What a rank carries (two_level/rails.hpp) it gets from the
// others of its node, and adds it, in order, to what came from the node before. The ranks of the last node hand the
// result to the root, wherever it is. Segments are at different stages at the same time.
//
//   2 nodes of 2 ranks, root 0, halves 0 and 1 of the vector:
//     stage         rank 0         rank 1         rank 2           rank 3
//     node 0        0 of 0+1       1 of 0+1
//     node 1        0 -> 2         1 -> 3         0 of 0+1+2+3     1 of 0+1+2+3
//     to the root                                 0 -> 0           1 -> 0
//
// Steps: N+1 for N nodes, and one for each further segment. Bytes on the wire, per node: n each way, but 2n into the
// root's if it is neither the first nor the last: in rank order, the least possible. Wins: long vectors in rank order,
// for which linear sends the root every input. Limits: several nodes, each of which has neighbouring ranks. Of 16-bit
// floats, sums travel as float32. Source: as allreduce. Tested by: tests/unit/plan/algorithms_test.cpp, with every
// other builder; tests/unit/plan/two_level_test.cpp.
#include "plan/two_level/carrier.hpp"

namespace col::plan::reduce {
namespace {

struct OrderedChain {
  Carrier carrier;
  bool is_root;
  Slice finished;  // on the last node, but for the root: results on their way to it, of two segments by turns

  void operator()(int k, std::size_t s, Round& round) const {
    const int n = carrier.nodes().count();
    const auto result = [&](const Piece& piece) {
      if (is_root) return piece.in(Buffer::output);
      return finished.part(s % 2 * carrier.carried() + carrier.place_of(piece, s), piece.count);
    };
    if (k < n) return carrier.fold_in_order(k, s, round, result);
    carrier.hand_to_root(n - 1, s, round, result);
  }
};

Plan build_ordered_chain(const PlanRequest& request) {
  Carrier carrier(request, {{.blocks = {{0, request.count}}}});
  const int n = carrier.nodes().count();
  const bool is_root = request.rank == request.root;
  Scratch scratch;
  carrier.take_ordered_memory(scratch);
  const bool hands_on = carrier.node() == n - 1 && !is_root;
  const Slice finished = scratch.take(Buffer::scratch, hands_on ? 2 * carrier.carried() : 0);
  return pipelined(carrier.segments(), n + 1, scratch, OrderedChain{carrier, is_root, finished});
}

}  // namespace

extern constinit const Algorithm two_level_chain = {
    .collective = Collective::reduce,
    .name = "two_level_chain",
    .summary =
        "sums go from node to node in rank order, on all their ranks, and to the root; long vectors, several nodes",
    .parameters = "segment",
    .refuse =
        [](const PlanRequest& request) { return refuse_dealt_nodes(request, "chain_pipelined", "chain_pipelined"); },
    .build = build_ordered_chain,
};

}  // namespace col::plan::reduce
