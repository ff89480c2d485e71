// Double-tree allreduce: two binary trees, each of which reduces and broadcasts half of the vector, in segments.
//
// In a binary tree half of the ranks are leaves, which send once what inner ranks receive twice and send once: their
// ports idle. So a second tree, in which the leaves of the first are the inner ranks, takes the other half of the
// vector, and all ports carry the same. Segments go up one after the other; the root sends each down as soon as it is
// complete, while the next ones are still on their way up.
//
//   4 ranks, labels 1 to 4 in order:     tree 0           tree 1 (mirrored)
//                                           3                0
//                                          /                  \ .
//                                         1                    2
//                                        / \                  / \ .
//                                       0   2                1   3
//   One segment in tree 0: 0 -> 1 and 2 -> 1, 1 -> 3, complete, 3 -> 1, 1 -> 0 and 1 -> 2. Tree 1 does the same to the
//   other half in the same rounds.
//
// The tree is the in-order one over labels 1 … p: a label with lowest bit b has its children b/2 to either side, odd
// labels are leaves. Tree 1 is its mirror image for even p, and is shifted by one for odd p; either way no rank is an
// inner one twice.
//
// Steps: S + 2h - 1, h = floor(log2 p) and S segments per tree, with up to four messages each way per rank in each.
// Bytes on the wire, per rank: 2n at most. Cost: about 4(S + h)(a + sb) + 2(S + h)sg, s = n/2S, which tends to 2nb + ng
// for long vectors; the messages of a round that meet at a port cost up to a third on top.
// Wins: long vectors on many ranks, where the 2(p-1)a of a ring is too much.
// Limits: any p; needs a commutative operator.
// Source: P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan,
// Parallel Computing 35(12), 2009, whose edge colouring would have the messages of a round take turns; here they share
// the ports. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include <array>

#include <cmath>

#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/support.hpp"
#include "plan/trees.hpp"

namespace col::plan::allreduce {
namespace {

// Zero for the root's parent and for children that do not exist.
constexpr int parent_of(int label, int size) noexcept {
  const int bit = lowest_bit(label);
  const int above = (label ^ bit) | (bit << 1);
  return above <= size ? above : label ^ bit;
}
constexpr int left_child_of(int label) noexcept {
  const int half = lowest_bit(label) / 2;
  return half == 0 ? 0 : label - half;
}
constexpr int right_child_of(int label, int size) noexcept {
  int half = lowest_bit(label) / 2;
  while (label + half > size) half /= 2;
  return half == 0 ? 0 : label + half;
}

// One rank's place in one of the two trees, and its half of the vector.
struct Tree {
  int parent = -1;  // none: the root
  std::array<int, 2> child = {-1, -1};
  std::array<bool, 2> child_is_leaf = {};
  int depth = 0;
  std::size_t offset = 0;  // of the half
  Blocks segments;
  Slice sum[2];                  // inner ranks, when partial results are wide: by parity of the segment
  std::array<Slice, 2> landing;  // what the children send

  bool is_root() const noexcept { return parent < 0; }
  bool is_leaf() const noexcept { return child[0] < 0 && child[1] < 0; }
};

Tree tree_of(const PlanRequest& request, bool second) {
  const int p = request.size;
  const auto rank_of = [&](int label) {
    if (label == 0) return -1;
    if (!second) return label - 1;
    return p % 2 == 0 ? p - label : label % p;
  };
  int label = request.rank + 1;
  if (second) label = p % 2 == 0 ? p - request.rank : (request.rank == 0 ? p : request.rank);
  const std::array<int, 2> children = {left_child_of(label), right_child_of(label, p)};
  Tree tree;
  tree.parent = rank_of(parent_of(label, p));
  for (std::size_t c = 0; c < 2; ++c) {
    tree.child[c] = rank_of(children[c]);
    tree.child_is_leaf[c] = children[c] % 2 == 1;
  }
  for (int above = parent_of(label, p); above != 0; above = parent_of(above, p)) ++tree.depth;
  return tree;
}

struct DoubleTree {
  PlanRequest request;
  int height;
  std::array<Tree, 2> trees;

  // The segment that passes a point of the tree in a round, if any does.
  static bool passes(const Tree& tree, std::size_t index, int delay) {
    return index >= static_cast<std::size_t>(delay) && index - static_cast<std::size_t>(delay) < tree.segments.parts();
  }
  static Slice segment(const Tree& tree, Buffer buffer, std::size_t s) {
    return tree.segments.slice(buffer, s, tree.offset);
  }
  Slice sum(const Tree& tree, std::size_t s) const {
    if (!request.widens) return segment(tree, Buffer::output, s);
    return tree.sum[s % 2].part(0, tree.segments.count(s));
  }

  // All ranks at one depth do the same in a round: a segment climbs and falls one level in each round.
  void operator()(std::size_t index, Round& round) const {
    for (const Tree& tree : trees) {
      const int climbed = height - tree.depth;  // the round in which segment 0 leaves for the parent
      const int fell = height + tree.depth;     // … and for the children
      if (!tree.is_root() && passes(tree, index, climbed)) {
        const std::size_t s = index - static_cast<std::size_t>(climbed);
        round.send(tree.parent, tree.is_leaf() ? segment(tree, Buffer::input, s) : sum(tree, s));
      }
      if (!tree.is_root() && passes(tree, index, fell - 1))
        round.recv(tree.parent, segment(tree, Buffer::output, index - static_cast<std::size_t>(fell - 1)));
      if (tree.is_leaf()) continue;
      if (passes(tree, index, climbed - 1)) gather(tree, index - static_cast<std::size_t>(climbed - 1), round);
      if (!passes(tree, index, fell)) continue;
      for (const int child : tree.child) {
        if (child >= 0) round.send(child, segment(tree, Buffer::output, index - static_cast<std::size_t>(fell)));
      }
    }
  }

  // Left child, this rank, right child, in this order.
  void gather(const Tree& tree, std::size_t s, Round& round) const {
    const Slice own = segment(tree, Buffer::input, s);
    const Slice to = sum(tree, s);
    const auto arrived = [&](std::size_t c) { return tree.landing[c].part(0, own.count); };
    for (std::size_t c = 0; c < 2; ++c) {
      if (tree.child[c] >= 0) round.recv(tree.child[c], arrived(c));
    }
    if (tree.child[0] >= 0) round.reduce(to, arrived(0), own);
    if (tree.child[1] >= 0) round.reduce(to, tree.child[0] >= 0 ? to : own, arrived(1));
    if (tree.is_root()) round.convert(segment(tree, Buffer::output, s), to);
  }
};

Plan build_double_tree(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  const Blocks halves = Blocks::even(request.count, 2);
  const std::size_t parts = segments(request, halves.largest()).parts();
  DoubleTree plan{.request = request, .height = floor_log2(request.size), .trees = {}};
  Scratch scratch;
  for (std::size_t t = 0; t < 2; ++t) {
    Tree& tree = plan.trees[t];
    tree = tree_of(request, t == 1);
    tree.offset = halves.offset(t);
    tree.segments = Blocks::even(halves.count(t), parts);
    if (tree.is_leaf()) continue;
    const std::size_t most = tree.segments.largest();
    for (std::size_t c = 0; c < 2; ++c) {
      if (request.widens) tree.sum[c] = scratch.take(Buffer::wide, most);
      if (tree.child[c] >= 0)
        tree.landing[c] = scratch.take(tree.child_is_leaf[c] ? raw_buffer(request) : Buffer::wide, most);
    }
  }
  return make_plan(parts + 2 * static_cast<std::size_t>(plan.height) - 1, scratch, plan);
}

// An estimate: how the two trees meet in a rank's ports differs from rank to rank.
double allreduce_double_tree(const CostTerms& t) {
  const double segments = t.segments(t.n / 2);
  const double segment = t.n / 2 / segments;
  if (t.p == 2) return segments * (2 * t.message(segment) + t.add(segment));
  const double depth = segments - 1 + std::log2(t.p);
  return (4 * depth - 2) * t.message(segment) + (2 * depth - 2) * t.add(segment);
}

}  // namespace

extern constinit const Algorithm double_tree = {
    .collective = Collective::allreduce,
    .name = "double_tree",
    .summary = "two complementary binary trees, half of the vector in segments on each; long vectors, many ranks",
    .order = FoldOrder::any,
    .parameters = "segment",
    .build = build_double_tree,
    .cost = {.text = "about (4D-2)(α + sβ) + (2D-2)sγ, s = n/2S, D = S-1 + log2 p",
             .seconds = allreduce_double_tree,
             .least = 0.75,
             .most = 1.35},
};

}  // namespace col::plan::allreduce
