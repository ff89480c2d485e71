// What a plan would cost under the fitted parameters of the machine.
#pragma once

#include "colbench/results.hpp"

namespace col::colbench {

// Simulates the plan of every cell whose algorithm has one and whose backend has been fitted, and sets its
// model_seconds. Pure; takes milliseconds for each cell.
void apply_model(Results& results);

}  // namespace col::colbench
