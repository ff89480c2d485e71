// One run as two, whose launches were made in turn.
#pragma once

#include <utility>

#include "colbench/results.hpp"

namespace col::colbench {

// Launches 0, 2, 4, … and 1, 3, 5, …, numbered anew, so that launches of the same number were next to each other: to be
// compared with Rule::interleaved. What a cell or the run has besides its samples both have. A cell without samples on
// one side is there without samples. Pure.
std::pair<Results, Results> split_alternating(const Results& results);

}  // namespace col::colbench
