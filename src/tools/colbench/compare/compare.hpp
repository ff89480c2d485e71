// The rule that decides whether two sets of launches are faster, slower, or undecided. All functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "colbench/cell/results.hpp"
#include "colbench/stats/sample.hpp"
#include "common/style.hpp"

namespace col::colbench {

enum class Change : std::uint8_t { faster, slower, undecided };  // B, against A
std::string_view to_string(Change verdict);

struct Rule {
  double alpha = 0.05;       // the largest probability that chance alone gives any verdict
  double min_effect = 0.03;  // a smaller difference does not count
  // A's and B's launches were made in turn, so that a longer disturbance of the machine affects both: a[i] and b[i] are
  // next to each other in time.
  bool interleaved = false;
  int resamples = 2000;
  std::uint64_t seed = 1;
};

// The verdict of the medians of launches. One launch is one observation: its samples share a placement in memory, a
// state of the machine and a moment, so more of them say little more.
struct Effect {
  double median_a = 0, median_b = 0;  // of the launches
  // B over A. Interleaved: of the remainders, after each launch is divided by the median of the six around it (its own
  // pair, the one before and the one after). This median is the level of noise that both sides share.
  double ratio = 1;
  // The 95 % interval of the ratio. By the rank-sum test, in which three launches count as one observation, as in
  // launch_interval(); interleaved, by bootstrap. From 0 to infinity with too few launches.
  Interval interval = {};
  // The rank-sum test's: by Mann and Whitney; interleaved, by exchange of the remainders within pairs.
  double p = 1;
  double smallest_p = 1;  // the smallest p that this number of launches can give
  // Above 1 if launches are similar to the ones before them; p takes this into account. Always 1 if interleaved.
  double dependence = 1;
};
// Requires: positive medians of launches in the order of time, on both sides at least one; interleaved: equal numbers.
Effect effect_of(std::span<const double> a, std::span<const double> b, const Rule& rule);

// Slower: `p` (adjusted for the number of tests) is at most alpha, the ratio is at least 1 + min_effect, and its
// interval is above 1. All three are required, so that a verdict never contradicts the numbers beside it. Faster: the
// same for A over B.
Change verdict_of(const Effect& effect, double p, const Rule& rule);

// The smallest number of launches a side with which this number of tests can give a verdict.
std::size_t fewest_launches(std::size_t tests, const Rule& rule);

// Two runs, row by row.
struct ComparedCell {
  CellSpec spec = {};
  std::size_t launches_a = 0, launches_b = 0;
  std::string ran_a = {}, ran_b = {};  // "ring over shm"
  Effect effect = {};
  double p = 1;  // adjusted for the number of cells
  Change verdict = Change::undecided;
  std::string why = {};  // why nothing could be decided, in words; empty if it is simply not known
};

// A cell that is in only one of them, or is invalid in one of them.
struct LeftOutCell {
  enum class Reason : std::uint8_t { only_in_a, only_in_b, unusable };
  CellSpec spec = {};
  Reason reason = Reason::unusable;
  std::string why = {};  // "only in A", "invalid in B: 3 elements are wrong", "not measured in A: …"
};

struct Comparison {
  Rule rule = {};
  std::vector<ComparedCell> cells = {};  // in A's order
  std::vector<LeftOutCell> left_out = {};
  std::vector<std::string> warnings = {};  // one line each: differences other than the compared ones

  std::size_t count(Change verdict) const;
};

// The medians of launches that both cells have, in the order of time.
std::pair<std::vector<double>, std::vector<double>> paired_medians(const Cell& a, const Cell& b);

// Matches cells by their CellSpec. Interleaved: launches of the same number are a pair, and others are left out. Pure
// and deterministic.
Comparison compare(const Results& a, const Results& b, const Rule& rule);

// Slower, and by more than `over`.
bool is_regression(const ComparedCell& cell, double over);

// One run as two, as if their launches were made in turn. Launches 0, 2, 4, … and launches 1, 3, 5, …, numbered again
// from 0. Launches of the same number were next to each other in time, so compare them with Rule::interleaved. Both
// sides have everything of a cell or run except its samples. A cell without samples on one side is there without
// samples. Pure.
std::pair<Results, Results> split_alternating(const Results& results);

// The names of the rows of one table: text_of() and, if rows differ in it, ranks, root, device and cache.
std::vector<std::string> row_names(const std::vector<CellSpec>& specs);
// "0.031", "<0.001".
std::string p_text(double p);
// "0.981 to 1.032"; "-" if there is none.
std::string interval_text(const Interval& interval);

// The rows with a verdict for each, and '#' lines below: what was left out and why, warnings, and at the end a summary
// of the verdicts. Whole lines.
std::string comparison_table(const Comparison& comparison, tools::Style style);

// "12 rows compared: 1 faster, 2 slower, 9 undecided; 2 left out".
std::string comparison_summary(const Comparison& comparison);

// The same as JSON; `a` and `b` name the two runs:
// {"schema": "colbench-compare", "schema_version": 1, "a", "b",
//  "rule":     {"alpha", "min_effect", "interleaved", "resamples", "seed"},
//  "cells":    [{"spec": as in colbench's results, "a": {"launches", "median", "ran"}, "b": likewise,
//                "ratio", "ratio_low", "ratio_high", "p", "p_holm", "dependence", "verdict", "why"}],
//  "left_out": [{"spec", "why"}], "warnings": [text], "summary"}
// Medians are in seconds.
std::string comparison_json(const Comparison& comparison, const std::string& a, const std::string& b);

}  // namespace col::colbench
