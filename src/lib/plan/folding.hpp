// Treats a group of any size as a power of two of smaller groups, for algorithms that halve or double.
#pragma once

#include <col/plan.hpp>

#include "plan/blocks.hpp"
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
  // True if a group has two ranks.
  bool folds() const noexcept { return doubles_ > 0; }
  int group_of(int rank) const noexcept { return rank < 2 * doubles_ ? rank / 2 : rank - doubles_; }
  // For group == groups(): the number of all ranks.
  int first_rank(int group) const noexcept { return group < doubles_ ? 2 * group : group + doubles_; }
  bool is_double(int group) const noexcept { return group < doubles_; }
  bool is_extra(int rank) const noexcept { return rank < 2 * doubles_ && rank % 2 == 1; }
  bool has_extra(int rank) const noexcept { return rank < 2 * doubles_ && rank % 2 == 0; }

 private:
  int size_, steps_, doubles_;
};

// Before all else, the extra of a group hands in its input. The rank that acts for the group receives it as `raw`, and
// adds it to its own input.
inline void fold_in(const Folding& folding, int rank, Slice input, Slice raw, Slice sum, Round& round) {
  if (folding.is_extra(rank)) return round.send(rank - 1, input);
  if (!folding.has_extra(rank)) return;
  round.recv(rank + 1, raw);
  round.reduce(sum, input, raw);
}
// After all else, the extra is told the result.
inline void fold_out(const Folding& folding, int rank, Slice output, Round& round) {
  if (folding.is_extra(rank)) return round.recv(rank - 1, output);
  if (folding.has_extra(rank)) round.send(rank + 1, output);
}

// The part of `vector` that a group has left, cut into one block for each group, after `cuts` halvings: each keeps the
// lower half if the next bit of the group's number is 0, from the lowest bit on.
inline Slice half_of(const Folding& folding, const Blocks& blocks, int group, int cuts, const Slice& vector) {
  int first = 0;
  for (int k = 0; k < cuts; ++k) first += ((group >> k) & 1) * (folding.groups() >> (k + 1));
  const int last = first + (folding.groups() >> cuts);
  return blocks.range(vector.buffer, static_cast<std::size_t>(first), static_cast<std::size_t>(last), vector.offset);
}

}  // namespace col::plan
