// Direct allreduce: every block straight to the rank that adds it up, and straight back to all.
//
// Rank b is responsible for block b. In the first round everybody sends it theirs; it folds what it got in rank order.
// In the second it sends the complete block to everybody. Two rounds whatever the number of ranks, all messages of a
// round under way at once.
//
//   4 ranks, what each one sends:
//     round   rank 0           rank 1           rank 2           rank 3
//       0     1→1 2→2 3→3      0→0 2→2 3→3      0→0 1→1 3→3      0→0 1→1 2→2       block→rank, bare
//       1     0→1,2,3          1→0,2,3          2→0,1,3          3→0,1,2           complete
//
// Steps: 2, of p-1 messages each. Bytes on the wire, per rank: 2n(p-1)/p, the least possible. Cost, with one port:
// 2(p-1)a + 2fnb + fng, f = (p-1)/p, if its messages happen to take turns. Wins: links that carry many messages at once
// (shared memory, a full crossbar), and wherever a result must not depend on the algorithm: it adds in rank order.
// Limits: any p; p-1 connections per rank at once; scratch of n.
// In the tree's order (Order::tree), a rank first folds its subtrees (tree_order.hpp), and sends block b of each of
// them: n(m+1)(p-1)/p bytes, with m subtrees of a rank, which is the same where shares are nodes of the tree. Source:
// the pairwise exchange of R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in
// MPICH, IJHPCA 19(1), 2005, in one step. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder;
// tests/unit/plan/tree_order_test.cpp.
#include <memory>

#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/rank_order.hpp"
#include "plan/support.hpp"
#include "plan/tree_order.hpp"

namespace col::plan::allreduce {
namespace {

// Its rounds: the subtrees, if there are any to fold; to the owners of blocks; and back.
Plan build_direct_tree(const PlanRequest& request) {
  const Blocks blocks = Blocks::even(request.count, static_cast<std::size_t>(request.size));
  const Slice result = blocks.slice(Buffer::output, request.rank);
  Scratch scratch;
  const auto shares = std::make_shared<const TreeShares>(request, result.offset, result, false, scratch);
  const std::size_t push = shares->local_rounds();
  const auto generate = [shares, blocks, result, push](std::size_t index, Round& round) {
    if (index < push) return shares->own(round);
    for (int distance = 1; distance < shares->size; ++distance) {
      const int to = shifted(shares->rank, distance, shares->size);
      const int from = shifted(shares->rank, -distance, shares->size);
      if (index == push) {
        const Slice block = blocks.slice(Buffer::output, to);
        shares->send(to, block.offset, block.count, round);
        shares->receive(from, round);
      } else {
        round.send(to, result);
        round.recv(from, blocks.slice(Buffer::output, from));
      }
    }
    if (index > push) return;
    shares->fold.begin(round);
    shares->fold.end(round);
  };
  Plan plan = make_plan(push + (request.size > 1 ? 2 : 1), scratch, generate);
  plan.contributions = shares->total;
  return plan;
}

Plan build_direct(const PlanRequest& request) {
  if (!request.contributions.empty()) return build_direct_tree(request);
  if (request.size == 1) return alone(request);
  Scratch scratch;
  const ShardsInRankOrder blocks = shards_in_rank_order(request, scratch);
  return make_plan(2, scratch, [blocks, size = request.size](std::size_t index, Round& round) {
    // Each rank begins with its right neighbour, so that they do not all begin with the same rank.
    for (int distance = 1; distance < size; ++distance) {
      if (index == 0)
        blocks.push(distance, round);
      else
        blocks.pull(distance, round);
    }
    if (index == 0) blocks.fold(round);
  });
}

// An estimate for p > 4: ranks that have added up early are in each other's way in the second round.
double allreduce_direct(const CostTerms& t) {
  return 2 * (t.p - 1) * t.message(t.n / t.p) + t.f() * t.add(t.n);
}

}  // namespace

extern constinit const Algorithm direct = {
    .collective = Collective::allreduce,
    .name = "direct",
    .summary = "every block straight to its rank and back to all, in two rounds; in rank order, for crossbars",
    .order = FoldOrder::rank_order,
    .build = build_direct,
    .cost = {.text = "about 2(p-1)α + 2fnβ + fnγ", .seconds = allreduce_direct, .least = 0.80, .most = 1.01},
    .keeps_tree = true,
};

}  // namespace col::plan::allreduce
