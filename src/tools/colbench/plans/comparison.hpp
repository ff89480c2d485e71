// Algorithms side by side: measured, and by the model. All functions are pure.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colbench/cell/results.hpp"
#include "colbench/plans/choice.hpp"
#include "common/table.hpp"

namespace col::colbench {

// ---- Ranking --------------------------------------------------------------------------------------------------------

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

// Groups of cells that differ only in the algorithm, in the order of their first appearance.
std::vector<std::vector<const Cell*>> compared_cells(std::span<const Cell> cells);

// ---- The report -----------------------------------------------------------------------------------------------------

// The library's choice for a cell; nothing if it cannot be known.
using ChoiceOf = std::function<std::optional<Chooser::Result>(const Cell& cell)>;

// A table for cells that differ only in the algorithm, the fastest first, and conclusions: what the library would
// choose, how well the model predicts the order, and which algorithms cannot be told apart.
tools::Table algorithm_ranking(std::span<const Cell* const> cells, const ChoiceOf& choice, bool utf8);

}  // namespace col::colbench
