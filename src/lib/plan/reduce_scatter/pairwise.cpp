// Pairwise reduce-scatter: in round k every rank sends the block of the rank k above to that rank, and adds to its own
// block what the rank k below sends.
//
//   4 ranks, who sends to whom:            what rank 2 does with what comes
//     round 0   0->1  1->2  2->3  3->0     low = x1 + x2
//     round 1   0->2  1->3  2->0  3->1     low = x0 + low
//     round 2   0->3  1->0  2->1  3->2     low + x3
//
// Contributions come from the ranks below, the nearest first, and then from those above, the farthest first. The two
// sides are added up apart, each one only at its lower end, and put together at last: so neighbours meet neighbours.
//
// With n the bytes of all blocks together and f = (p-1)/p:
// Steps: p-1. Bytes on the wire, per rank: fn, never in the wide type: of narrow floats, half or a quarter of what ring
// sends. Cost: (p-1)a + fnb + fng. Wins: long vectors, operators that do not commute, unequal blocks (reduce_scatterv):
// each crosses the wire once per sender. Limits: any p; latency grows with p; distant partners. Source: R. Thakur, R.
// Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA 19(1), 2005; there for
// commutative operators. Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col::plan::reduce_scatter {
namespace {

struct Pairwise {
  PlanRequest request;
  Blocks blocks;
  Slice landing = {};  // one bare block
  Slice top = {};      // the bare block of the highest rank, the first of those above
  Slice low = {};      // the sum of the ranks below and this one
  Slice high = {};     // the sum of the ranks above

  void operator()(std::size_t index, Round& round) const {
    const int p = request.size;
    const int rank = request.rank;
    const int k = static_cast<int>(index) + 1;
    const int to = shifted(rank, k, p);
    const int from = shifted(rank, -k, p);
    const Slice own = blocks.slice(Buffer::input, rank);
    const Slice result{Buffer::output, 0, own.count};
    const bool last = k == p - 1;  // the only round that may write the output: in place, that is `own`
    const Slice sum = last && !request.widens ? result : low;

    round.send(to, blocks.slice(Buffer::input, to));
    if (from < rank) {
      round.recv(from, landing);
      round.reduce(sum, landing, k == 1 ? own : low);
    } else {
      const bool first_above = from == p - 1;
      round.recv(from, first_above ? top : landing);
      if (!first_above) round.reduce(high, landing, from == p - 2 ? top : high);
      if (last) round.reduce(sum, rank == 0 ? own : low, first_above ? top : high);
    }
    if (last) round.convert(result, sum);
  }
};

Plan build_pairwise(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  Pairwise pairwise{.request = request, .blocks = Blocks::of_input(request)};
  const std::size_t count = pairwise.blocks.count(static_cast<std::size_t>(request.rank));
  const Buffer raw = raw_buffer(request);
  Scratch scratch;
  pairwise.landing = scratch.take(raw, count);
  pairwise.low = scratch.take(Buffer::wide, count);
  pairwise.high = scratch.take(Buffer::wide, count);
  pairwise.top = raw == Buffer::scratch ? scratch.take(raw, count) : pairwise.high;
  return make_plan(static_cast<std::size_t>(request.size - 1), scratch, pairwise);
}

// The partial sums of the two sides meet at last.
double reduce_scatter_pairwise(const CostTerms& t) {
  return reduce_scatter_in_steps(t) + (t.p > 2 ? t.add(t.n / t.p) : 0);
}

}  // namespace

extern constinit const Algorithm pairwise = {
    .collective = Collective::reduce_scatter,
    .name = "pairwise",
    .summary = "one partner per round, each block straight to its owner; for long vectors and ordered operators",
    .order = FoldOrder::contiguous,
    .build = build_pairwise,
    .cost = {.text = "(p-1)α + fnβ + nγ", .seconds = reduce_scatter_pairwise},
};

}  // namespace col::plan::reduce_scatter
