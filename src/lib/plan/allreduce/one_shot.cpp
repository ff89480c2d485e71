// One-shot allreduce: everyone sends everything to everyone, and each rank adds it all up by itself.
//
//   4 ranks, what each one holds:
//     before   rank 0: 0         rank 1: 1         rank 2: 2         rank 3: 3
//     after    ((0+1)+2)+3       ((0+1)+2)+3       ((0+1)+2)+3       ((0+1)+2)+3       one round, 12 messages
//
// The fold is in rank order, so all ranks get equal bits although nobody is told the result. In place, the last
// addition waits for a second, local round: until then the memory of the result is being sent.
//
// Steps: 1, of p-1 messages. Bytes on the wire, per rank: n(p-1). Cost, with one port: (p-1)(a + nb + ng); where the
// messages go at once, a + (p-1)(nb + ng). Wins: a few elements among few ranks, where one latency is all that counts.
// Limits: any p; scratch of n(p-1).
// In the tree's order (Order::tree), a rank sends its subtrees (tree_order.hpp), of which it may have several.
// Source: the all-to-all broadcast of V. Kumar, A. Grama, A. Gupta, G. Karypis: Introduction to parallel computing,
// 1994, ch. 3, with a local sum. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder;
// tests/unit/plan/tree_order_test.cpp.
#include <memory>

#include "plan/cost_terms.hpp"
#include "plan/rank_order.hpp"
#include "plan/support.hpp"
#include "plan/tree_order.hpp"

namespace col::plan::allreduce {
namespace {

struct OneShot {
  PlanRequest request;
  RankOrderFold fold;

  void operator()(std::size_t index, Round& round) const {
    const int last = request.size - 1;
    if (index == 1) return fold.step(last, round);
    for (int distance = 1; distance <= last; ++distance) {
      const int from = shifted(request.rank, -distance, request.size);
      round.send(shifted(request.rank, distance, request.size), fold.own);
      round.recv(from, fold.slot(from));
    }
    for (int i = 1; i < last; ++i) fold.step(i, round);
    if (!request.in_place) fold.step(last, round);
  }
};

// Its rounds: the subtrees, if there are any to fold; all to all; in place, what writes the result.
Plan build_one_shot_tree(const PlanRequest& request) {
  Scratch scratch;
  const auto shares =
      std::make_shared<const TreeShares>(request, 0, Slice{Buffer::output, 0, request.count}, true, scratch);
  const std::size_t exchange = shares->local_rounds();
  const bool ends_late = request.in_place && request.size > 1;
  const auto generate = [shares, exchange, ends_late, count = request.count](std::size_t index, Round& round) {
    if (index < exchange) return shares->own(round);
    if (index > exchange) return shares->fold.end(round);
    for (int distance = 1; distance < shares->size; ++distance) {
      shares->send(shifted(shares->rank, distance, shares->size), 0, count, round);
      shares->receive(shifted(shares->rank, -distance, shares->size), round);
    }
    shares->fold.begin(round);
    if (!ends_late) shares->fold.end(round);
  };
  Plan plan = make_plan(exchange + (ends_late ? 2 : 1), scratch, generate);
  plan.contributions = shares->total;
  return plan;
}

Plan build_one_shot(const PlanRequest& request) {
  if (!request.contributions.empty()) return build_one_shot_tree(request);
  if (request.size == 1) return alone(request);
  Scratch scratch;
  const RankOrderFold fold =
      fold_in_rank_order(request, {Buffer::input, 0, request.count}, {Buffer::output, 0, request.count}, scratch);
  return make_plan(request.in_place ? 2 : 1, scratch, OneShot{.request = request, .fold = fold});
}

}  // namespace

extern constinit const Algorithm one_shot = {
    .collective = Collective::allreduce,
    .name = "one_shot",
    .summary = "everything to everyone in one round, each adds in rank order; for a few elements and few ranks",
    .order = FoldOrder::rank_order,
    .build = build_one_shot,
    .cost = {.text = "(p-1)(α + nβ + nγ)",
             .seconds = [](const CostTerms& t) { return (t.p - 1) * (t.message(t.n) + t.add(t.n)); }},
    .keeps_tree = true,
};

}  // namespace col::plan::allreduce
