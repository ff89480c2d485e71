// Algorithms side by side: measured, and as the model has them. All of it pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colbench/results.hpp"

namespace col::colbench {

// "ring": what was asked for, else what the ranks have made of it.
std::string algorithm_of(const Cell& cell);

struct RankedAlgorithm {
  const Cell* cell = nullptr;
  CellStatistics statistics = {};
  int rank = 0;                        // by measured median, from 1
  std::optional<int> model_rank = {};  // by the model's time, among those that have one
  bool apart_from_next = true;         // its interval ends before that of the next one begins
};
// The cells that count, the fastest first. `cells` must outlive the result.
std::vector<RankedAlgorithm> ranked_algorithms(std::span<const Cell* const> cells);

// Spearman's rank correlation: 1 for the same order, -1 for the opposite. Equal values share the mean of their ranks.
// Nothing for fewer than two pairs, or where one side has but one value. Requires: equal lengths.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

// Cells that differ in nothing but the algorithm, in the order in which they first come.
std::vector<std::vector<const Cell*>> compared_cells(std::span<const Cell> cells);

}  // namespace col::colbench
