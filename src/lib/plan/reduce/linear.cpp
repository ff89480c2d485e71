// Linear reduce: every rank sends its input to the root, which folds them in rank order.
//
// While one contribution arrives, the root adds the one before it. Rank 0's is what the sum starts from, wherever the
// root is, so that the result is ((x0 op x1) op x2) op … for every root.
//
//   4 ranks, root 2:
//     round   arrives at rank 2   rank 2 adds
//       0     x0
//       1     x1
//       2     x3                  s = x0 + x1, s = s + x2 (its own)
//       3                         s = s + x3
//
// Steps: p-1 messages one after the other. Bytes on the wire: n(p-1), all into the root's port.
// Cost: (p-1)(a + nb) + ng when adding is faster than receiving.
// Wins: two or three ranks; a result that must not depend on the algorithm. Limits: none; any p, any root, any
// operator.
// In the tree's order (Order::tree), each rank folds its subtrees (tree_order.hpp) and sends them, all at once; the
// root folds those, with scratch for all of them. Source: E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn:
// Collective communication: theory, practice, and experience, Concurrency and Computation 19(13), 2007. Tested by:
// tests/unit/plan/algorithms_test.cpp; tests/unit/plan/tree_order_test.cpp.
#include <memory>

#include "plan/cost_terms.hpp"
#include "plan/support.hpp"
#include "plan/tree_order.hpp"

namespace col::plan::reduce {
namespace {

struct Linear {
  PlanRequest request;
  Slice sum = {};
  Slice first = {};       // rank 0's contribution
  Slice landing[2] = {};  // the others', by parity of the round: one is added while the next arrives

  // The root's rounds: the contribution of `arriving` travels, and that of the rank before it is added.
  int rank_in_round(int index) const { return index < request.root ? index : index + 1; }

  void add(int rank, const Slice& contribution, Round& round) const {
    if (rank > 0) round.reduce(sum, rank == 1 ? first : sum, contribution);
  }

  void operator()(std::size_t index, Round& round) const {
    const Slice input{Buffer::input, 0, request.count};
    if (request.rank != request.root) return round.send(request.root, input);
    const int k = static_cast<int>(index);
    if (k < request.size - 1) {
      const int arriving = rank_in_round(k);
      round.recv(arriving, arriving == 0 ? first : landing[k % 2]);
    }
    if (k == 0) return;
    const int arrived = rank_in_round(k - 1);
    add(arrived, landing[(k - 1) % 2], round);
    if (arrived + 1 == request.root) add(request.root, input, round);
    if (k == request.size - 1) round.convert({Buffer::output, 0, request.count}, sum);
  }
};

// Its rounds: the subtrees, if there are any to fold; and to the root.
Plan build_linear_tree(const PlanRequest& request) {
  const bool is_root = request.rank == request.root;
  Scratch scratch;
  const auto shares = std::make_shared<const TreeShares>(
      request, 0, Slice{Buffer::output, 0, is_root ? request.count : 0}, false, scratch);
  const auto generate = [shares, is_root, root = request.root, count = request.count](std::size_t index, Round& round) {
    if (index < shares->local_rounds()) return shares->own(round);
    if (!is_root) return shares->send(root, 0, count, round);
    for (int distance = 1; distance < shares->size; ++distance)
      shares->receive(shifted(root, distance, shares->size), round);
    shares->fold.begin(round);
    shares->fold.end(round);
  };
  Plan plan = make_plan(shares->local_rounds() + 1, scratch, generate);
  plan.contributions = shares->total;
  return plan;
}

Plan build_linear(const PlanRequest& request) {
  if (!request.contributions.empty()) return build_linear_tree(request);
  if (request.size == 1) return alone(request);
  Linear linear{.request = request};
  if (request.rank != request.root) return make_plan(1, {}, linear);
  Scratch scratch;
  // In place, the root's own input is in the place of the result until it is added.
  const bool sum_in_output = !request.widens && (!request.in_place || request.root == 0);
  linear.sum = sum_in_output ? Slice{Buffer::output, 0, request.count} : scratch.take(Buffer::wide, request.count);
  if (request.root == 0) {
    linear.first = {Buffer::input, 0, request.count};
  } else {
    linear.first = raw_buffer(request) == Buffer::wide ? linear.sum : scratch.take(Buffer::scratch, request.count);
  }
  for (Slice& landing : linear.landing) landing = scratch.take(raw_buffer(request), request.count);
  return make_plan(static_cast<std::size_t>(request.size), scratch, linear);
}

// The root adds one contribution while the next one travels.
double reduce_linear(const CostTerms& t) {
  return t.message(t.n) + (t.p - 2) * std::max(t.message(t.n), t.add(t.n)) + t.add(t.n);
}

}  // namespace

extern constinit const Algorithm linear = {
    .collective = Collective::reduce,
    .name = "linear",
    .summary = "the root adds every rank's input in rank order; for very few ranks",
    .order = FoldOrder::rank_order,
    .build = build_linear,
    .cost = {.text = "(p-1)(α + nβ) + nγ, adding being faster than the wire", .seconds = reduce_linear},
    .keeps_tree = true,
};

}  // namespace col::plan::reduce
