// Reduce over several nodes, long vectors: inside the nodes, then a chain of nodes on every rail.
//
// Every rank adds up what it carries of its node's inputs (two_level/rails.hpp). The sums go from node to node, each of
// which adds its own, and end at the root's node, whose ranks hand the root what they carry. Segments are at different
// stages at the same time.
//
//   2 nodes of 2 ranks, root 0, halves 0 and 1 of the vector:
//     stage         rank 0        rank 1        rank 2        rank 3
//     in the node   0 of 0+1      1 of 0+1      0 of 2+3      1 of 2+3
//     chain         has 0         has 1         0 -> 0        1 -> 1
//     in the node   has all       1 -> 0
//
// Steps: N+1 for N nodes, and one for each further segment. Bytes on the wire, per node: n each way at most, the least
// possible, in whatever order the ranks are dealt to the nodes. Wins: long vectors, nodes of several ranks.
// Limits: several nodes; any root. Of narrow floats, sums travel as float32.
// Source: J. L. Träff, S. Hunold: Decomposing MPI collectives for exploiting multi-lane communication, CLUSTER 2020.
// Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder; tests/unit/plan/two_level_test.cpp.
#include "plan/two_level/carrier.hpp"

namespace col::plan::reduce {
namespace {

struct Stages {
  Carrier carrier;
  bool is_root;
  int root_node;
  int place;       // of this rank's node in the chain that ends with the root's
  Slice finished;  // on the other ranks of the root's node: results on their way to the root, of two segments by turns

  void operator()(int k, std::size_t s, Round& round) const {
    const int n = carrier.nodes().count();
    const auto result = [&](const Piece& piece) {
      if (is_root) return piece.in(Buffer::output);
      return finished.part(s % 2 * carrier.carried() + carrier.place_of(piece, s), piece.count);
    };
    if (k == 0) return carrier.fold_in_node(s, round);
    if (k == n) return carrier.hand_to_root(root_node, s, round, result);
    if (place == k - 1) carrier.send_sums(carrier.ring(1), 0, s, place == 0, round);
    if (place == k) carrier.add_sums(carrier.ring(-1), 0, s, 0, place == n - 1, round, result);
  }
};

Plan build_rails(const PlanRequest& request) {
  Carrier carrier(request, {{.blocks = {{0, request.count}}}});
  const int n = carrier.nodes().count();
  const int root_node = carrier.nodes().node_of(request.root);
  const int place = shifted(carrier.node(), -root_node - 1, n);
  Scratch scratch;
  // Sums that come from the second node of the chain on are not bare.
  carrier.take_memory(place + 2, place == 0 ? 0 : 1, place == 1 ? carrier.ring(-1) : -1, scratch);
  const bool is_root = request.rank == request.root;
  const bool hands_on = place == n - 1 && !is_root;
  const Slice finished = scratch.take(Buffer::scratch, hands_on ? 2 * carrier.carried() : 0);
  return pipelined(carrier.segments(), n + 1, scratch, Stages{carrier, is_root, root_node, place, finished});
}

}  // namespace

extern constinit const Algorithm two_level_rails = {
    .collective = Collective::reduce,
    .name = "two_level_rails",
    .summary = "sums go from node to node, on all their ranks at once; long vectors, several nodes",
    .order = FoldOrder::any,
    .parameters = "segment",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "mst"); },
    .build = build_rails,
};

}  // namespace col::plan::reduce
