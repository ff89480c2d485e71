// Treats a group of any size as a power of two of smaller groups, for algorithms that halve or double.
#pragma once

#include "plan/support.hpp"

namespace col::plan {

// The p ranks form 2^steps groups, each a range of ranks. The first p - 2^steps groups have two ranks, the others one.
// The first rank of a group acts for it. The second, if there is one, is its extra.
//
//   6 ranks: groups {0 1} {2 3} {4} {5}
class Folding {
 public:
  explicit Folding(int size) noexcept : size_(size), steps_(floor_log2(size)), doubles_(size - (1 << steps_)) {}

  int size() const noexcept { return size_; }
  int steps() const noexcept { return steps_; }
  int groups() const noexcept { return 1 << steps_; }
  int group_of(int rank) const noexcept { return rank < 2 * doubles_ ? rank / 2 : rank - doubles_; }
  // For group == groups(): the number of all ranks.
  int first_rank(int group) const noexcept { return group < doubles_ ? 2 * group : group + doubles_; }
  bool is_double(int group) const noexcept { return group < doubles_; }
  bool is_extra(int rank) const noexcept { return rank < 2 * doubles_ && rank % 2 == 1; }
  bool has_extra(int rank) const noexcept { return rank < 2 * doubles_ && rank % 2 == 0; }

 private:
  int size_, steps_, doubles_;
};

}  // namespace col::plan
