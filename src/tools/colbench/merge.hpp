// The launches of a run as one result.
#pragma once

#include <span>

#include "colbench/measure.hpp"

namespace col::colbench {

// Adds what one more launch has found. Cells are told apart by their spec; of the machine the best is kept, and the
// median-like middle of what was fitted.
void add_launch(Results& all, const Results& launch);

// Keeps the faster of two messages of the same length, and how many that is the best of.
void add_best_message(Machine::Fit& fit, const Machine::Fit::Message& message);

// What can be said only when all launches are there: why sampling ended, which cells are invalid, the exit code.
void conclude(Results& results, const Method& method);

}  // namespace col::colbench
