// The output of `colbench suite ps`. All functions are pure.
#pragma once

#include <string>

#include "colbench/results.hpp"
#include "common/style.hpp"

namespace col::colbench {

// A table for the rows with that many ranks. `machine` was measured with the same number of ranks. notes_text() says
// why rows are invalid.
std::string ps_table(const Results& results, int ranks, const Machine& machine, tools::Style style);

// What the columns mean, and what the store is and is not.
std::string ps_legend();

// Adds the results for one more number of ranks: the rows and warnings, the machine with the most ranks, and the exit
// code that matters most to a reader.
void add_results(Results& all, const Results& one);

}  // namespace col::colbench
