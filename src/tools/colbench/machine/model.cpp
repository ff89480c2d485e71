#include "colbench/machine/model.hpp"

#include <algorithm>

#include <col/plan.hpp>
#include <col/select.hpp>

#include "colbench/commands/plan_source.hpp"

namespace col::colbench {
namespace {

const Machine::Fit* fit_of(const Machine& machine, const Cell& cell) {
  for (const Machine::Fit& fit : machine.fits)
    if (fit.backend == cell.spec.backend || fit.backend == cell.backend) return &fit;
  return nullptr;
}

std::optional<double> simulated_seconds(const Cell& cell, const CostModel& model) {
  const std::optional<Collective> collective = collective_of(cell.spec.operation);
  const int size = group_size_of(cell.spec);
  if (!collective || cell.algorithm.empty() || size < 2) return std::nullopt;
  const AlgorithmSpec named = AlgorithmSpec::parse(cell.algorithm);
  const Algorithm* algorithm = find_algorithm(*collective, named.name);
  if (algorithm == nullptr) return std::nullopt;  // a native one, or a file
  CellSpec group = cell.spec;
  group.ranks = size;
  const PlanProblem problem(problem_of(group, named));
  if (algorithm->refuse(problem.request(0))) return std::nullopt;
  return simulate(problem, plans_of(*algorithm, problem), model, size_of(group.dtype), wide_size_of(group)).seconds;
}

}  // namespace

void apply_model(Results& results) {
  double memory = 0;
  for (const Machine::Level& level : results.machine.levels) memory = level.together;  // of the largest
  for (Cell& cell : results.cells) {
    const Machine::Fit* fit = fit_of(results.machine, cell);
    if (fit == nullptr || !cell.note.empty()) continue;
    const CostModel model{.intra = {fit->alpha, fit->beta},
                          .inter = {fit->alpha, fit->beta},
                          .gamma = fit->gamma,
                          .copy = fit->copy,
                          .cores = results.run.cpus,
                          .cpu_per_message = fit->alpha / 2,
                          .memory_bandwidth = memory};
    cell.model_seconds = simulated_seconds(cell, model);
  }
}

}  // namespace col::colbench
