// Plans of cells, and their cost with the fitted parameters of the machine.
#pragma once

#include <col/plan.hpp>
#include <col/select.hpp>

#include "colbench/cell/results.hpp"

namespace col::colbench {

// The problem that the plans of `cell` solve, for all ranks together: blocks of equal length, and narrow floats reduced
// in float32, as in a group.
PlanProblem::Spec problem_of(const CellSpec& cell, const AlgorithmSpec& algorithm = {});
// Bytes of an element of a partial result.
std::size_t wide_size_of(const CellSpec& cell);

// Simulates the plan of every cell that has a plan and a fitted backend, and sets its model_seconds. Pure. Takes
// milliseconds for each cell.
void apply_model(Results& results);

}  // namespace col::colbench
