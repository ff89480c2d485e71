// The two trees that builders share: recursive halving of the rank range, and binomial trees over relative ranks.
#pragma once

#include <algorithm>
#include <optional>

namespace col::plan {

// One range of ranks during recursive halving: [first, last] is cut after `middle`. `root` has (or wants) the data that
// the whole range shares. `other`, at the far end of the half without `root`, stands for that half.
struct Halving {
  int first, middle, last;
  int root, other;

  bool root_is_left() const noexcept { return root <= middle; }
  int left_size() const noexcept { return middle - first + 1; }
  int right_size() const noexcept { return last - middle; }
  int root_size() const noexcept { return root_is_left() ? left_size() : right_size(); }
  int other_size() const noexcept { return root_is_left() ? right_size() : left_size(); }
};

// The range that contains `rank` after `depth` cuts of ranks 0 … size-1; nothing if this is a single rank. Ranges of
// one depth are disjoint. There are ceil_log2(size) depths.
constexpr std::optional<Halving> halving(int rank, int root, int size, int depth) noexcept {
  int first = 0, last = size - 1;
  for (int d = 0; first < last; ++d) {
    const int middle = first + (last - first) / 2;
    const int other = root <= middle ? last : first;
    if (d == depth) return Halving{first, middle, last, root, other};
    const bool goes_left = rank <= middle;
    if (goes_left != (root <= middle)) root = other;
    (goes_left ? last : first) = goes_left ? middle : middle + 1;
  }
  return std::nullopt;
}

// The binomial tree over 0 … size-1 with root 0. The parent of v is v without its lowest bit. The subtree of v is the
// range [v, v + subtree(v, size)).
constexpr int lowest_bit(int v) noexcept {
  return v & -v;
}
constexpr int subtree(int v, int size) noexcept {
  return v == 0 ? size : std::min(lowest_bit(v), size - v);
}

// How many of `count` ranks from `rank` on come before the wrap-around to rank 0.
constexpr int ranks_before_end(int rank, int count, int size) noexcept {
  return std::min(count, size - rank);
}

}  // namespace col::plan
