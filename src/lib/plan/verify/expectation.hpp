// What the buffers must hold when all plans have ended.
#pragma once

#include "plan/verify/machine.hpp"

namespace col::plan::symbolic {

// Throws Fault if an output does not hold what the collective promises. Returns the strongest order in which all
// reduced elements were combined.
FoldOrder check_results(const PlanProblem& problem, const Symbols& symbols, const Machine& machine);

}  // namespace col::plan::symbolic
