// Order::tree: what of the tree over all contributions a rank can fold alone, and how partial sums become the result.
//
// The contributions of all ranks are numbered 0 to V-1, rank by rank. Neighbours are combined level by level, and an
// odd last one goes up as it is. So a tree over n neighbours is cut after the largest power of two below n:
//
//   V = 7 on 3 ranks:    0   1   2 | 3   4 | 5   6
//                        └─┬─┘   └─┬─┘   └─┬─┘   │
//                          └───┬───┘       └──┬──┘
//                              └──────┬───────┘
//
// A subtree is named by its leaves. Rank 0 folds [0, 2) and has leaf 2; rank 1 has the leaves 3 and 4; and so on: no
// subtree of two ranks is folded before its parts have met. A rank has at most 2 log2 k subtrees, and one if its share
// is a node of the tree: 64 contributions on 2, 4 or 8 ranks, 96 on 3 or 6.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include <col/plan.hpp>

#include "plan/blocks.hpp"
#include "plan/support.hpp"

namespace col::plan {

// Contributions [first, last), of which there is at least one.
struct Leaves {
  std::size_t first = 0, last = 0;
  std::size_t count() const noexcept { return last - first; }
  bool operator==(const Leaves&) const = default;
  // Requires: count() > 1.
  Leaves left() const noexcept { return {first, first + std::bit_floor(count() - 1)}; }
  Leaves right() const noexcept { return {left().last, last}; }
};

// Adds the largest subtrees of `node` that lie within [first, last), from left to right.
inline void add_subtrees(Leaves node, std::size_t first, std::size_t last, std::vector<Leaves>& found) {
  if (node.last <= first || last <= node.first) return;
  if (first <= node.first && node.last <= last) return found.push_back(node);
  add_subtrees(node.left(), first, last, found);
  add_subtrees(node.right(), first, last, found);
}

// Elements of one contribution: of the vector, or of the blocks of all ranks.
inline std::size_t length_of_one(const PlanRequest& request) noexcept {
  if (row_of(request.collective).in != Extent::blocks) return request.count;
  const Blocks blocks = Blocks::of_input(request);
  std::size_t length = 0;
  for (std::size_t i = 0; i < blocks.parts(); ++i) length += blocks.count(i);
  return length;
}

// The subtrees of each rank.
inline std::vector<std::vector<Leaves>> subtrees_of(const PlanRequest& request) {
  const Leaves root{0, std::reduce(request.contributions.begin(), request.contributions.end())};
  std::vector<std::vector<Leaves>> subtrees;
  std::size_t first = 0;
  for (const std::size_t own : request.contributions) {
    add_subtrees(root, first, first + own, subtrees.emplace_back());
    first += own;
  }
  return subtrees;
}

// This rank's partial sums. A subtree of one leaf is where it is in the input; the others are folded into `wide`, a
// piece at a time: what is between the leaves and the sum stays in the caches.
class LocalFold {
 public:
  LocalFold(const PlanRequest& request, std::vector<Leaves> subtrees, Scratch& scratch)
      : count_(length_of_one(request)), piece_(std::min(count_, kPiece)), subtrees_(std::move(subtrees)) {
    for (const Leaves& subtree : subtrees_) {
      const std::size_t place = subtree.first - subtrees_.front().first;
      sums_.push_back(subtree.count() == 1 ? Slice{Buffer::input, place * count_, count_}
                                           : scratch.take(Buffer::wide, count_));
      if (subtree.count() > 1) levels_ = std::max<std::size_t>(levels_, std::bit_width(subtree.count()));
    }
    between_ = scratch.take(Buffer::wide, levels_ * piece_);
  }

  const std::vector<Leaves>& subtrees() const noexcept { return subtrees_; }
  const Slice& sum(std::size_t subtree) const noexcept { return sums_[subtree]; }
  // There is a sum that is not a leaf.
  bool folds() const noexcept { return levels_ > 0; }

  void operator()(Round& round) const {
    for (std::size_t begin = 0; begin < count_; begin += piece_) {
      const std::size_t n = std::min(piece_, count_ - begin);
      for (std::size_t i = 0; i < subtrees_.size(); ++i) fold(subtrees_[i], sums_[i].part(begin, n), 0, begin, round);
    }
  }

 private:
  static constexpr std::size_t kPiece = 4096;  // elements

  // Folds a part of the vectors into `to`. Returns where the value is: a leaf stays where it is.
  Slice fold(Leaves node, Slice to, std::size_t level, std::size_t begin, Round& round) const {
    if (node.count() == 1) return {Buffer::input, (node.first - subtrees_.front().first) * count_ + begin, to.count};
    const Slice left = fold(node.left(), to, level, begin, round);
    const Slice right = fold(node.right(), between_.part(level * piece_, to.count), level + 1, begin, round);
    round.reduce(to, left, right);
    return to;
  }

  std::size_t count_, piece_;
  std::vector<Leaves> subtrees_;
  std::vector<Slice> sums_;
  std::size_t levels_ = 0;
  Slice between_;
};

// One subtree as it comes to a rank that puts all of them together.
struct PartialSum {
  Leaves leaves;
  Slice value;
  bool is_kept = false;  // it is still needed, so no other value takes its place
};

// How the partial sums of all ranks become the result.
struct TreeFold {
  Round before, last;  // the last steps alone write the result

  void begin(Round& round) const { add(before, round); }
  void end(Round& round) const { add(last, round); }

 private:
  static void add(const Round& steps, Round& round) {
    for (const Step& step : steps.steps()) round.add(step);
  }
};

class TreeFoldMaker {
 public:
  // Requires: `parts` are subtrees of one tree, from left to right, and all of it. They have result.count elements
  // each.
  static TreeFold make(const std::vector<PartialSum>& parts, Slice result, bool widens, Scratch& scratch) {
    TreeFoldMaker maker(parts, result, widens, scratch);
    const Value sum = maker.fold({0, parts.back().leaves.last});
    maker.made_.last.convert(result, sum.slice);
    return std::move(maker.made_);
  }

 private:
  struct Value {
    Slice slice;
    bool is_kept;
  };

  TreeFoldMaker(const std::vector<PartialSum>& parts, Slice result, bool widens, Scratch& scratch)
      : total_(parts.back().leaves.last), result_(result), widens_(widens), scratch_(scratch), next_(parts.data()) {}

  Value fold(Leaves node) {
    if (next_->leaves == node) {
      const PartialSum& part = *next_++;
      // A leaf of the user's narrow type has no room for a sum.
      return {part.value, part.is_kept || part.value.buffer != Buffer::wide};
    }
    const Value left = fold(node.left());
    const Value right = fold(node.right());
    const bool is_root = node.count() == total_;
    Value to{result_, true};
    if (!is_root || widens_) to = !left.is_kept ? left : !right.is_kept ? right : Value{spare(), false};
    (is_root ? made_.last : made_.before).reduce(to.slice, left.slice, right.slice);
    if (!left.is_kept && !right.is_kept) spares_.push_back(right.slice);
    return to;
  }

  Slice spare() {
    if (spares_.empty()) return scratch_.take(Buffer::wide, result_.count);
    const Slice slice = spares_.back();
    spares_.pop_back();
    return slice;
  }

  std::size_t total_;
  Slice result_;
  bool widens_;
  Scratch& scratch_;
  const PartialSum* next_;
  std::vector<Slice> spares_;
  TreeFold made_;
};

// Algorithms in the tree's order have this in common: each rank folds its subtrees, and sends some elements of them to
// ranks that fold those to the end.
struct TreeShares {
  int rank, size;
  std::vector<std::vector<Leaves>> subtrees;  // of each rank
  LocalFold own;
  std::vector<Slice> landing;      // of the subtrees of all ranks, in their order; this rank's are empty
  std::vector<std::size_t> first;  // the number of a rank's first subtree in that order
  TreeFold fold = {};
  std::size_t total = 0;

  // This rank folds the elements [begin, begin + result.count), perhaps none. `keeps_own`: its own sums are sent
  // meanwhile.
  TreeShares(const PlanRequest& request, std::size_t begin, Slice result, bool keeps_own, Scratch& scratch)
      : rank(request.rank),
        size(request.size),
        subtrees(subtrees_of(request)),
        own(request, subtrees[static_cast<std::size_t>(request.rank)], scratch) {
    std::vector<PartialSum> parts;
    for (int from = 0; from < size; ++from) {
      first.push_back(landing.size());
      const std::vector<Leaves>& theirs = subtrees[static_cast<std::size_t>(from)];
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        const Buffer buffer = theirs[i].count() == 1 ? raw_buffer(request) : Buffer::wide;
        landing.push_back(from == rank ? Slice{} : scratch.take(buffer, result.count));
        parts.push_back(from == rank ? PartialSum{theirs[i], own.sum(i).part(begin, result.count), keeps_own}
                                     : PartialSum{theirs[i], landing.back()});
      }
      if (!theirs.empty()) total = theirs.back().last;
    }
    fold = TreeFoldMaker::make(parts, result, request.widens, scratch);
  }

  void send(int to, std::size_t begin, std::size_t count, Round& round) const {
    for (std::size_t i = 0; i < own.subtrees().size(); ++i) round.send(to, own.sum(i).part(begin, count));
  }
  void receive(int from, Round& round) const {
    const auto r = static_cast<std::size_t>(from);
    for (std::size_t i = 0; i < subtrees[r].size(); ++i) round.recv(from, landing[first[r] + i]);
  }

  // The rounds before that in which the sums are sent.
  std::size_t local_rounds() const noexcept { return own.folds() ? 1 : 0; }
};

}  // namespace col::plan
