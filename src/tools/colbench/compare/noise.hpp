// This machine's noise floor: the result of comparing something with itself. All functions are pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colbench/compare/compare.hpp"
#include "common/style.hpp"

namespace col::colbench {

struct Floor {
  ComparedCell cell = {};                  // every other launch against the rest
  double scatter = 0;                      // of launch medians: their interquartile range over their median
  double lowest = 0, highest = 0;          // the extremes of these medians, over their median, less 1
  std::optional<double> interleaved = {};  // smallest_detectable(), if A and B are measured in turn
  std::optional<double> apart = {};        // the same, if they are two runs
  bool is_false_alarm() const { return cell.verdict != Change::undecided; }
};

struct Noise {
  int launches = 0;  // a side
  std::vector<Floor> floors = {};
  Comparison comparison = {};  // what the floors are from
};

// `results` have twice as many launches as one side of a comparison.
Noise noise_of(const Results& results, double min_effect);

// The rows, and '#' lines below; the last of these is the conclusion. Whole lines.
std::string noise_table(const Noise& noise, tools::Style style);

// The smallest slowdown, in steps of 0.5 % up to 100 %, that `rule` calls slower with 90 % power in a comparison of one
// row with `launches` a side; nothing if there is none. It is found by simulation. Both sides are drawn from the
// measured launches, where a[i] and b[i] are next to each other in time and do not differ, and one side is made slower.
// Launches are drawn in stretches of four in a row, so that bursts of noise stay bursts (Künsch, "The jackknife and the
// bootstrap for general stationary observations" (1989)): as pairs if rule.interleaved, otherwise as single launches,
// separately for each side. Deterministic.
std::optional<double> smallest_detectable(std::span<const double> a, std::span<const double> b, std::size_t launches,
                                          Rule rule);

}  // namespace col::colbench
