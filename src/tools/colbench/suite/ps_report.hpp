// What `colbench suite ps` prints. All of it pure.
#pragma once

#include <string>

#include "colbench/results.hpp"
#include "common/style.hpp"

namespace col::colbench {

// A table for the rows with that many ranks. `machine` is what was measured with as many ranks. Why a
// row counts for nothing is left to notes_text().
std::string ps_table(const Results& results, int ranks, const Machine& machine, tools::Style style);

// What the columns mean, and what the store is and is not.
std::string ps_legend();

// Adds what one more number of ranks has found: rows and warnings one after the other, the machine of most ranks, the
// exit code that a reader must know first.
void add_results(Results& all, const Results& one);

}  // namespace col::colbench
