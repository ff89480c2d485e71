// Broadcast over several nodes, long vectors: a chain of nodes on every rail, and inside the nodes.
//
// The root gives the others of its node what they carry (two_level/rails.hpp). From there each part goes from node to
// node. Last, the ranks of a node give each other what they carry. Segments are at different stages at the same time.
//
//   2 nodes of 2 ranks, root 0, halves 0 and 1 of the vector:
//     stage         rank 0     rank 1     rank 2     rank 3
//     in the node   1 -> 1     has 1
//     chain         0 -> 2     1 -> 3     has 0      has 1
//     in the node              has all    has all    has all
//
// Steps: N+1 for N nodes, and one for each further segment. Bytes on the wire, per node: n each way at most, the least
// possible, in whatever order the ranks are dealt to the nodes. Wins: long vectors, nodes of several ranks.
// Limits: several nodes; any root.
// Source: J. L. Träff, S. Hunold: Decomposing MPI collectives for exploiting multi-lane communication, CLUSTER 2020.
// Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder; tests/unit/plan/two_level_test.cpp.
#include "plan/two_level/carrier.hpp"

namespace col::plan::broadcast {
namespace {

struct Stages {
  Carrier carrier;
  int root;
  int place;  // of this rank's node in the chain that begins with the root's

  void operator()(int k, std::size_t s, Round& round) const {
    const int n = carrier.nodes().count();
    const auto result = [](const Piece& piece) { return piece.in(Buffer::output); };
    if (k == 0) return carrier.scatter_in_node(s, round, result);
    if (k == n) return carrier.spread_in_node(s, root, round);
    if (place == k - 1) carrier.send(carrier.ring(1), 0, s, round, result);
    if (place == k) carrier.receive(carrier.ring(-1), 0, s, round, result);
  }
};

Plan build_rails(const PlanRequest& request) {
  const Carrier carrier(request, {{.blocks = {{0, request.count}}}});
  const int n = carrier.nodes().count();
  const int place = shifted(carrier.node(), -carrier.nodes().node_of(request.root), n);
  return pipelined(carrier.segments(), n + 1, {}, Stages{carrier, request.root, place});
}

}  // namespace

extern constinit const Algorithm two_level_rails = {
    .collective = Collective::broadcast,
    .name = "two_level_rails",
    .summary = "segments go from node to node, on all their ranks at once; long vectors, several nodes",
    .parameters = "segment",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "chain_pipelined"); },
    .build = build_rails,
};

}  // namespace col::plan::broadcast
