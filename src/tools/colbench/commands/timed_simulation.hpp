// A simulation that ends in time.
#pragma once

#include <optional>
#include <string>

#include <col/plan.hpp>

namespace col::colbench {

struct TimedSimulation {
  std::optional<double> seconds = {};  // what the collective takes; nothing when the simulation was given up
  std::string why_not = {};            // then: "it takes longer than …"
  double took = 0;                     // seconds that the simulation took
};

// col::simulate(), given up after `limit` (looked at whenever a rank begins a round), or at once where it would need
// gigabytes: where all ranks together have that many messages in one round. Throws what col::simulate() throws.
TimedSimulation simulate_within(Duration limit, const PlanProblem& problem, const PlanOfRank& plans,
                                const CostModel& model, std::size_t element_size, std::size_t wide_size);

// Sends and receives that all ranks together have in their largest rounds, by a sample of ranks.
std::size_t steps_at_once(const PlanProblem& problem, const PlanOfRank& plans);

}  // namespace col::colbench
