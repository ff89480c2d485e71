// A simulation with a time limit.
#pragma once

#include <optional>
#include <string>

#include <col/plan.hpp>

namespace col::colbench {

struct TimedSimulation {
  std::optional<double> seconds = {};  // the time of the collective; nothing if the simulation was given up
  std::string why_not = {};            // the reason then: "it takes longer than …"
  double took = 0;                     // seconds that the simulation took
};

// col::simulate(), given up after `limit` (checked when a rank begins a round), or at once if it would need gigabytes:
// if all ranks together have that many messages in one round. Throws what col::simulate() throws.
TimedSimulation simulate_within(Duration limit, const PlanProblem& problem, const PlanOfRank& plans,
                                const CostModel& model, std::size_t element_size, std::size_t wide_size);

// Sends and receives of all ranks together in their largest rounds, estimated from a sample of ranks.
std::size_t steps_at_once(const PlanProblem& problem, const PlanOfRank& plans);

}  // namespace col::colbench
