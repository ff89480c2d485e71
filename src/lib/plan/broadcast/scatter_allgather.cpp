// Scatter-allgather broadcast: scatter p blocks down a binomial tree, then allgather them around a ring.
//
// Ranks are counted from the root on. In the scatter, v hands the upper half of its blocks to the rank that heads the
// upper half of its subtree, so that v ends with the blocks of its subtree. In the ring, everybody passes on in round k
// the block that started k places to the left; a block that the right neighbour has from the scatter stays out of it,
// so the root's data is never written.
//
//   4 ranks, root 0, blocks that are sent:
//     round   rank 0      rank 1      rank 2      rank 3
//       0     2,3 -> 2
//       1     1 -> 1                  3 -> 3
//       2     0 -> 1      1 -> 2      2 -> 3                the ring, from here on
//       3     3 -> 1      0 -> 2      1 -> 3
//       4     2 -> 1                  0 -> 3
//
// Steps: L + p-1. Bytes on the wire, per rank: about 2n(p-1)/p. Cost: (L + p-1)a + 2fnb, f = (p-1)/p.
// Wins: long vectors, where mst would send all of n in each of L steps. Limits: any p, any root; latency grows with p.
// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"
#include "plan/trees.hpp"

namespace col::plan::broadcast {
namespace {

struct ScatterAllgather {
  PlanRequest request;
  Blocks blocks;

  // True if v, counted from the root, has block b when the scatter is over.
  bool has(int v, int b) const { return v <= b && b < v + subtree(v, request.size); }
  int rank_of(int v) const { return shifted(v, request.root, request.size); }
  Slice block(int b) const { return blocks.slice(Buffer::output, b); }
  Slice range(int first, int last) const {
    return blocks.range(Buffer::output, static_cast<std::size_t>(first), static_cast<std::size_t>(last));
  }

  void operator()(std::size_t index, Round& round) const {
    const int p = request.size;
    const int me = shifted(request.rank, -request.root, p);
    const int levels = ceil_log2(p);
    const int k = static_cast<int>(index) - levels;
    if (k < 0) {
      const int half = 1 << (-k - 1);
      if (me % half != 0) return;
      if (me & half) {
        round.recv(rank_of(me - half), range(me, me + subtree(me, p)));
      } else if (me + half < p) {
        round.send(rank_of(me + half), range(me + half, me + half + subtree(me + half, p)));
      }
      return;
    }
    const int right = shifted(me, 1, p), left = shifted(me, -1, p);
    const int sent = shifted(me, -k, p), arriving = shifted(me, -k - 1, p);
    if (!has(right, sent)) round.send(rank_of(right), block(sent));
    if (!has(me, arriving)) round.recv(rank_of(left), block(arriving));
  }
};

Plan build_scatter_allgather(const PlanRequest& request) {
  const std::size_t rounds = static_cast<std::size_t>(ceil_log2(request.size) + request.size - 1);
  return make_plan(rounds, {},
                   ScatterAllgather{.request = request,
                                    .blocks = Blocks::even(request.count, static_cast<std::size_t>(request.size))});
}

}  // namespace

extern constinit const Algorithm scatter_allgather = {
    .collective = Collective::broadcast,
    .name = "scatter_allgather",
    .summary = "scatters blocks, then passes them around a ring; for long vectors",
    .build = build_scatter_allgather,
    .cost = {.text = "(L+p-1)α + 2fnβ",
             .seconds = [](const CostTerms& t) { return (t.logarithm() + t.p - 1) * t.a + 2 * t.f() * t.n * t.b; }},
};

}  // namespace col::plan::broadcast
