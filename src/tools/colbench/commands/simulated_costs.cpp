#include "colbench/commands/simulated_costs.hpp"

#include <algorithm>
#include <chrono>

#include "colbench/commands/timed_simulation.hpp"

namespace col::colbench {
namespace {

constexpr std::size_t kClosedFormElement = 4;  // in which closed forms count segments

}  // namespace

SimulatedCosts::SimulatedCosts(Setting setting, std::span<const PlanSource> sources)
    : setting_(std::move(setting)), sources_(sources), one_link_(setting_.model) {
  if (!setting_.node_of_rank.empty()) one_link_.intra = one_link_.inter;
  budgets_.assign(sources.size(), {std::chrono::duration<double>(setting_.max_time).count(), 0});
}

const SimulatedCosts::Cost& SimulatedCosts::at(std::size_t source, std::size_t bytes) {
  const auto known = known_.find({source, bytes});
  if (known != known_.end()) return known->second;
  return known_.emplace(std::pair(source, bytes), find(source, bytes)).first->second;
}

SimulatedCosts::Cost SimulatedCosts::find(std::size_t number, std::size_t bytes) {
  const PlanSource& source = sources_[number];
  CellSpec cell = setting_.cell;
  cell.bytes = bytes;
  PlanProblem::Spec spec = problem_of(cell, source.spec());
  spec.node_of_rank = setting_.node_of_rank;
  const PlanProblem problem(std::move(spec));
  Cost cost;
  if (const auto refusal = source.refuse(problem)) {
    cost.refused = true;
    cost.why_not = *refusal;
    return cost;
  }
  if (source.algorithm() != nullptr) {
    PlanParameters parameters = problem.spec().parameters;
    parameters.segment = source.spec().segment_bytes / kClosedFormElement;
    cost.closed_form =
        closed_form_seconds(*source.algorithm(), cell.ranks, whole_bytes(cell, cell.ranks), one_link_, parameters);
  }
  Budget& budget = budgets_[number];
  if (budget.last > budget.left) {  // the next one will hardly be shorter
    cost.why_not = "simulating it takes longer than --max-time";
    return cost;
  }
  setting_.progress(source.name(), bytes);
  const auto limit = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(budget.left));
  TimedSimulation simulation =
      simulate_within(limit, problem, source.plans(problem), setting_.model, size_of(cell.dtype), wide_size_of(cell));
  budget.left -= simulation.took;
  budget.last = simulation.took;
  cost.simulated = simulation.seconds;
  cost.why_not = std::move(simulation.why_not);
  return cost;
}

}  // namespace col::colbench
