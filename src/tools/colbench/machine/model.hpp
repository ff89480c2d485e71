// The cost of a plan with the fitted parameters of the machine.
#pragma once

#include "colbench/results.hpp"

namespace col::colbench {

// Simulates the plan of every cell that has a plan and a fitted backend, and sets its model_seconds. Pure. Takes
// milliseconds for each cell.
void apply_model(Results& results);

}  // namespace col::colbench
