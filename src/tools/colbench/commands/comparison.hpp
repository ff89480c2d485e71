// The output of colbench algorithms.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "colbench/commands/choice.hpp"
#include "colbench/results.hpp"
#include "common/style.hpp"

namespace col::colbench {

// The library's choice for a cell; nothing if it cannot be known.
using ChoiceOf = std::function<std::optional<Chooser::Result>(const Cell& cell)>;

// A table for cells that differ only in the algorithm, the fastest first, and conclusions: how well the model predicts
// the order, and which algorithms cannot be told apart. Lines have 120 columns at most, except for reasons. Whole
// lines.
std::string algorithm_comparison(std::span<const Cell* const> cells, const ChoiceOf& choice, tools::Style style);

}  // namespace col::colbench
