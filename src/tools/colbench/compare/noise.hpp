// This machine's noise floor: the result of comparing something with itself. All functions are pure.
#pragma once

#include <optional>
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
  bool is_false_alarm() const { return cell.verdict != Verdict::undecided; }
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

}  // namespace col::colbench
