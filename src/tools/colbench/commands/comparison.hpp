// What colbench algorithms prints.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "colbench/commands/choice.hpp"
#include "colbench/results.hpp"
#include "common/style.hpp"

namespace col::colbench {

// What the library would choose for a cell; nothing when that cannot be said.
using ChoiceOf = std::function<std::optional<Chooser::Result>(const Cell& cell)>;

// A table for cells that differ in nothing but the algorithm, the fastest first, and what follows from it: how well the
// model tells the order, and who is not told apart. Lines of 120 columns at most, but for reasons. Whole lines.
std::string algorithm_comparison(std::span<const Cell* const> cells, const ChoiceOf& choice, tools::Style style);

}  // namespace col::colbench
