// Which pairs of ranks, and which ranks, are slower than the rest. All functions are pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colbench/cell/results.hpp"

namespace col::colbench {

// The time of a message between two ranks.
struct PairTime {
  int first = 0, second = 1;
  double seconds = 0;  // median
  double low = 0;      // a lower bound of it: the lower end of the median's interval, or the median of a launch
};
// Nothing if the cell names no pair, has no samples, or is invalid. A slowdown in only some launches is not a property
// of the pair; that is why there is `low`.
std::optional<PairTime> pair_time_of(const Cell& cell);

// The middle value, or the lower one of the two in the middle; 0 if there are none.
double lower_median(std::vector<double> values);

// A value is slower than the rest if even its `low` is above the median of all by more than 20 % and by more than 5
// median absolute deviations. The median of an even number of values is the lower of the two in the middle: up to half
// of them may be slow without hiding it.
struct Outliers {
  struct Rank {
    int rank = 0;
    double seconds = 0, ratio = 1;  // of its faster pairs, and this time over the median of all ranks
  };
  struct Pair {
    PairTime time = {};
    double ratio = 1;  // over the median of all pairs without a slow rank
  };
  // Both in the order of their ranks.
  // slow with all other ranks: the lower quartile of their pairs is slower than the others'
  std::vector<Rank> ranks = {};
  std::vector<Pair> pairs = {};  // slow pairs that no slow rank explains
  double median = 0;             // of all pairs without a slow rank
  bool comparable = false;       // there are at least three ranks and three pairs; otherwise nothing can stand out
};

// `pairs`: at most one time for two ranks, in any order; not every pair needs one.
Outliers find_outliers(int ranks, std::span<const PairTime> pairs);

// In sentences, one on each line: which ranks are slow and by how much, or that none is. `what`: "64-byte messages".
std::string outlier_text(const Outliers& outliers, const std::string& what);

}  // namespace col::colbench
