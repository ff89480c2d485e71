// Allreduce over several nodes, long vectors: reduce-scatter inside the nodes, a ring of nodes on every rail, allgather
// inside the nodes.
//
// The vector has a share for each node, and every node cuts all shares among its ranks (two_level/rails.hpp). First a
// rank adds up what it carries of its node's inputs. Then the shares go around the ring of nodes, and every node adds
// to them; then once more, complete. Last, ranks of a node give each other what they carry. Segments are at different
// stages at the same time.
//
//   2 nodes of 2 ranks, shares A and B, halves 0 and 1 of them:
//     stage         rank 0              rank 1              rank 2              rank 3
//     in the node   A0 B0 of 0+1        A1 B1 of 0+1        A0 B0 of 2+3        A1 B1 of 2+3
//     reduce        B0 -> 2, has A0     B1 -> 3, has A1     A0 -> 0, has B0     A1 -> 1, has B1
//     gather        A0 -> 2, has B0     A1 -> 3, has B1     B0 -> 0, has A0     B1 -> 1, has A1
//     in the node   has all             has all             has all             has all
//
// Steps: 2N for N nodes, and one for each further segment. Bytes on the wire, per node: 2n(N-1)/N each way, the least
// possible, in whatever order the ranks are dealt to the nodes. Wins: long vectors, nodes of several ranks.
// Limits: several nodes. Of narrow floats, sums travel as float32. Memory: an L-th of the vector, for L ranks on a
// node. Source: J. L. Träff, S. Hunold: Decomposing MPI collectives for exploiting multi-lane communication, CLUSTER
// 2020. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder; tests/unit/plan/two_level_test.cpp.
#include "plan/two_level/carrier.hpp"

namespace col::plan::allreduce {
namespace {

struct Stages {
  Carrier carrier;

  void operator()(int k, std::size_t s, Round& round) const {
    const int n = carrier.nodes().count();
    const auto result = [](const Piece& piece) { return piece.in(Buffer::output); };
    if (k == 0) return carrier.fold_in_node(s, round);
    if (k < n) return carrier.ring_reduce(k - 1, s, round, result);
    if (k < 2 * n - 1) return carrier.ring_gather(k - n, s, round, result);
    carrier.spread_in_node(s, -1, round);
  }
};

Plan build_rails(const PlanRequest& request) {
  Carrier carrier(request, even_shares(request.count, Nodes(request).count()));
  const int n = carrier.nodes().count();
  Scratch scratch;
  carrier.take_memory(n, n - 1, carrier.ring(-1), scratch);
  return pipelined(carrier.segments(), 2 * n, scratch, Stages{carrier});
}

}  // namespace

extern constinit const Algorithm two_level_rails = {
    .collective = Collective::allreduce,
    .name = "two_level_rails",
    .summary = "nodes reduce and gather shares around a ring, all their ranks at once; long vectors, several nodes",
    .order = FoldOrder::any,
    .parameters = "segment",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "ring_pipelined"); },
    .build = build_rails,
};

}  // namespace col::plan::allreduce
