// Direct reduce-scatter: everyone sends every block to its owner, all at once; the owner adds them up in rank order.
//
//   4 ranks, round 0, the only one (block):
//     rank 0 -> 1:1, 2:2, 3:3     rank 1 -> 2:2, 3:3, 0:0     rank 2 -> 3:3, 0:0, 1:1     rank 3 -> 0:0, 1:1, 2:2
//     rank 0: ((x0 + x1) + x2) + x3 of block 0, with its own block as x0; the others likewise
//
// With n the bytes of all blocks together and f = (p-1)/p:
// Steps: 1. Messages, per rank: p-1. Bytes on the wire, per rank: fn, never in the wide type. Cost with one port:
// (p-1)a + fnb + fng. Memory: p-1 blocks, as many as a rank's input has.
// Wins: `deterministic`, and operators that do not commute: the order is the ranks' own, whatever p is; few ranks;
// shared memory. Limits: any p; p(p-1) messages at once flood a network.
// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005 (its pairwise exchange, without the order of messages). Tested by: tests/unit/plan/algorithms_test.cpp.
#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/reduce_scatter/alone.hpp"
#include "plan/support.hpp"

namespace col::plan::reduce_scatter {
namespace {

struct Direct {
  PlanRequest request;
  Blocks blocks;
  Slice received;  // the other ranks' contributions, by rank
  Slice partial;

  // A rank's contribution to this rank's block.
  Slice contribution(int from) const {
    const auto own = static_cast<std::size_t>(request.rank);
    if (from == request.rank) return blocks.slice(Buffer::input, own);
    const auto place = static_cast<std::size_t>(from < request.rank ? from : from - 1);
    return received.part(place * partial.count, partial.count);
  }

  void operator()(std::size_t, Round& round) const {
    const int p = request.size;
    for (int k = 1; k < p; ++k) {
      const int to = shifted(request.rank, k, p);
      const int from = shifted(request.rank, -k, p);
      round.send(to, blocks.slice(Buffer::input, static_cast<std::size_t>(to)));
      round.recv(from, contribution(from));
    }
    const Slice result{Buffer::output, 0, partial.count};
    Slice sum = contribution(0);
    for (int from = 1; from < p; ++from) {
      // In place, the result may not be written before this rank's contribution has been read: only at the end.
      const Slice next = from == p - 1 && !request.widens ? result : partial;
      round.reduce(next, sum, contribution(from));
      sum = next;
    }
    round.convert(result, sum);
  }
};

Plan build_direct(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  const Blocks blocks = Blocks::of_input(request);
  const std::size_t count = blocks.count(static_cast<std::size_t>(request.rank));
  Scratch scratch;
  const Slice received = scratch.take(raw_buffer(request), static_cast<std::size_t>(request.size - 1) * count);
  const Slice partial = scratch.take(Buffer::wide, count);
  return make_plan(1, scratch, Direct{request, blocks, received, partial});
}

}  // namespace

extern constinit const Algorithm direct = {
    .collective = Collective::reduce_scatter,
    .name = "direct",
    .summary = "every block straight to its owner, added up in rank order; deterministic, for few ranks",
    .order = FoldOrder::rank_order,
    .parameters = "",
    .refuse = never_refuses,
    .build = build_direct,
    .cost = {.text = "(p-1)α + fnβ + fnγ", .seconds = reduce_scatter_in_steps},
};

}  // namespace col::plan::reduce_scatter
