// Joins the launches of a run into one result.
#pragma once

#include <span>

#include "colbench/measure.hpp"

namespace col::colbench {

// Adds the results of one more launch. Cells are identified by their spec. For the machine, the best value is kept; for
// fitted values, one near their median.
void add_launch(Results& all, const Results& launch);

// Keeps the faster of two messages of the same length, and counts how many were compared.
void add_best_message(Machine::Fit& fit, const Machine::Fit::Message& message);

// Sets what is known only after all launches: why sampling ended, which cells are invalid, the exit code.
void conclude(Results& results, const Method& method);

}  // namespace col::colbench
