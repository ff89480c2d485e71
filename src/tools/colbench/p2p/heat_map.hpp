// The pairs of ranks, and the ranks, that are slower than the rest. All functions are pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colbench/cell/results.hpp"
#include "common/report.hpp"

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

// Messages up to this size measure latency; larger ones measure bandwidth.
inline constexpr std::size_t kLargestLatencySize = 4096;

struct HeatMap {
  int ranks = 0;
  std::size_t bytes = 0;
  std::vector<PairTime> pairs = {};  // only measured pairs

  bool is_latency() const { return bytes <= kLargestLatencySize; }
  // Nothing if the pair was not measured.
  std::optional<double> seconds(int a, int b) const;
};

// The map of the valid cells of that size.
HeatMap heat_map_of(std::span<const Cell> cells, int ranks, std::size_t bytes);

// How dark a pair is, by its time over the median: 0 up to 1.1 times, then up to 1.2, 1.5 and 2 times, and 4 above.
inline constexpr int kShades = 5;
int shade_of(double ratio);

// "8-byte messages", "1M messages".
std::string messages_text(std::size_t bytes);
// "latency of 8-byte messages, in us", "bandwidth of 1M messages, in GB/s".
std::string title_of(const HeatMap& map);
// The pair's value in the map's unit, three digits: "1.23"; "-" if it was not measured.
std::string value_text(const HeatMap& map, int a, int b);
// The median of all pairs' times; 0 if there are none.
double median_seconds(const HeatMap& map);

// A row and a column for each rank; marks before the numbers say how slow a pair is.
tools::Table heat_map_table(const HeatMap& map, tools::Style style);
// Whole lines; of numbers for which `style.columns` have no room, the marks alone.
std::string heat_map_text(const HeatMap& map, tools::Style style);

}  // namespace col::colbench
