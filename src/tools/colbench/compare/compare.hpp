// Two runs, row by row.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "colbench/cell/results.hpp"
#include "colbench/compare/effect.hpp"

namespace col::colbench {

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

}  // namespace col::colbench
