// Splits one run into two, as if their launches were made in turn.
#pragma once

#include <utility>

#include "colbench/results.hpp"

namespace col::colbench {

// Launches 0, 2, 4, … and launches 1, 3, 5, …, numbered again from 0. Launches of the same number were next to each
// other in time, so compare them with Rule::interleaved. Both sides have everything of a cell or run except its
// samples. A cell without samples on one side is there without samples. Pure.
std::pair<Results, Results> split_alternating(const Results& results);

}  // namespace col::colbench
