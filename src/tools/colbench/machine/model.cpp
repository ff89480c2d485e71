#include "colbench/machine/model.hpp"

#include <algorithm>

namespace col::colbench {
namespace {

// Minimum and maximum of narrow floats are exact in their type.
bool widens(const CellSpec& cell) {
  return row_of(cell.dtype).is_narrow() && is_reduction(cell.operation) && cell.op != ReduceOp::min &&
         cell.op != ReduceOp::max;
}

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

PlanProblem::Spec problem_of(const CellSpec& cell, const AlgorithmSpec& algorithm) {
  const Collective collective = collective_of(cell.operation).value();
  PlanProblem::Spec spec{.collective = collective, .size = cell.ranks};
  spec.root = is_rooted(cell.operation) ? std::max(cell.root, 0) : 0;
  spec.widens = widens(cell);
  spec.in_place = cell.in_place;
  spec.parameters.radix = algorithm.radix;
  if (algorithm.segment_bytes > 0)
    spec.parameters.segment = std::max<std::size_t>(1, algorithm.segment_bytes / size_of(cell.dtype));
  const std::size_t count = block_count(cell, cell.ranks);
  const auto ranks = static_cast<std::size_t>(cell.ranks);
  if (row_of(collective).has_counts())
    spec.counts.assign(collective == Collective::alltoallv ? ranks * ranks : ranks, count);
  else
    spec.count = count;
  return spec;
}

std::size_t wide_size_of(const CellSpec& cell) {
  return widens(cell) ? size_of(DType::float32) : size_of(cell.dtype);
}

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
