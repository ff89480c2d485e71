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
// In the tree's order (Order::tree), a rank first folds its subtrees (tree_order.hpp), and sends a block of each.
// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005 (its pairwise exchange, without the order of messages). Tested by: tests/unit/plan/algorithms_test.cpp;
// tests/unit/plan/tree_order_test.cpp.
#include <memory>

#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/rank_order.hpp"
#include "plan/support.hpp"
#include "plan/tree_order.hpp"

namespace col::plan::reduce_scatter {
namespace {

// Its rounds: the subtrees, if there are any to fold; and to the owners of blocks.
Plan build_direct_tree(const PlanRequest& request) {
  const Blocks blocks = Blocks::of_input(request);
  const auto own = static_cast<std::size_t>(request.rank);
  Scratch scratch;
  const auto shares = std::make_shared<const TreeShares>(request, blocks.offset(own),
                                                         Slice{Buffer::output, 0, blocks.count(own)}, false, scratch);
  const auto generate = [shares, blocks](std::size_t index, Round& round) {
    if (index < shares->local_rounds()) return shares->own(round);
    for (int distance = 1; distance < shares->size; ++distance) {
      const int to = shifted(shares->rank, distance, shares->size);
      const Slice block = blocks.slice(Buffer::input, to);
      shares->send(to, block.offset, block.count, round);
      shares->receive(shifted(shares->rank, -distance, shares->size), round);
    }
    shares->fold.begin(round);
    shares->fold.end(round);
  };
  Plan plan = make_plan(shares->local_rounds() + 1, scratch, generate);
  plan.contributions = shares->total;
  return plan;
}

Plan build_direct(const PlanRequest& request) {
  if (!request.contributions.empty()) return build_direct_tree(request);
  if (request.size == 1) return alone(request);
  const Blocks blocks = Blocks::of_input(request);
  const Slice own = blocks.slice(Buffer::input, request.rank);
  // Out of place too, the partial sum has memory of its own.
  PlanRequest in_place = request;
  in_place.in_place = true;
  Scratch scratch;
  const RankOrderFold fold = fold_in_rank_order(in_place, own, {Buffer::output, 0, own.count}, scratch);
  return make_plan(1, scratch, [request, blocks, fold](std::size_t, Round& round) {
    for (int k = 1; k < request.size; ++k) {
      const int to = shifted(request.rank, k, request.size);
      const int from = shifted(request.rank, -k, request.size);
      round.send(to, blocks.slice(Buffer::input, to));
      round.recv(from, fold.slot(from));
    }
    fold(round);
  });
}

}  // namespace

extern constinit const Algorithm direct = {
    .collective = Collective::reduce_scatter,
    .name = "direct",
    .summary = "every block straight to its owner, added up in rank order; deterministic, for few ranks",
    .order = FoldOrder::rank_order,
    .build = build_direct,
    .cost = {.text = "(p-1)α + fnβ + fnγ", .seconds = reduce_scatter_in_steps},
    .keeps_tree = true,
};

}  // namespace col::plan::reduce_scatter
