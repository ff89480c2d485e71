// A simulation, of all ranks or of those that differ.
#pragma once

#include <cstddef>

#include <col/plan.hpp>

namespace col::plan::simulation {

// Fewer are simulated as they are, in a matter of seconds.
inline constexpr int kMany = 1024;

// As col::simulate(), which has looked at the model. A group of `many` ranks or more is searched for ranks that are
// alike (simulation/symmetry.hpp).
Simulation simulate(const PlanProblem& problem, const PlanOfRank& plans, const CostModel& model,
                    std::size_t element_size, std::size_t wide_size, int many = kMany);

}  // namespace col::plan::simulation
