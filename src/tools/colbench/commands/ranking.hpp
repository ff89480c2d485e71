// Algorithms side by side: measured, and by the model. All functions are pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colbench/results.hpp"

namespace col::colbench {

// "ring": the requested algorithm, or the one that the ranks chose.
std::string algorithm_of(const Cell& cell);

struct RankedAlgorithm {
  const Cell* cell = nullptr;
  CellStatistics statistics = {};
  int rank = 0;                        // by measured median, from 1
  std::optional<int> model_rank = {};  // by the model's time, among those that have one
  bool apart_from_next = true;         // its interval ends before the next one's begins
};
// The valid cells, the fastest first. `cells` must outlive the result.
std::vector<RankedAlgorithm> ranked_algorithms(std::span<const Cell* const> cells);

// Spearman's rank correlation: 1 for the same order, -1 for the opposite order. Equal values share the mean of their
// ranks. Nothing for fewer than two pairs, or if one side has only one value. Requires: equal lengths.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

// Groups of cells that differ only in the algorithm, in the order of their first appearance.
std::vector<std::vector<const Cell*>> compared_cells(std::span<const Cell> cells);

}  // namespace col::colbench
