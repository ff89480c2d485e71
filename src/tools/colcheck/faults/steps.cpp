#include "colcheck/faults/steps.hpp"

#include <col/plan.hpp>
#include <col/select.hpp>

namespace col::colcheck {
namespace {

PlanProblem problem_of(const Case& c, Collective collective) {
  PlanProblem::Spec spec{.collective = collective, .size = c.ranks, .root = c.root, .count = c.count};
  const AlgorithmSpec algorithm = AlgorithmSpec::parse(c.algorithm);
  spec.parameters.radix = algorithm.radix;
  spec.parameters.segment = algorithm.segment_bytes / size_of(c.dtype);
  if (is_v_form(c.primitive)) {
    for (int from = 0; from < c.ranks; ++from) {
      const int columns = c.primitive == Primitive::alltoallv ? c.ranks : 1;
      for (int to = 0; to < columns; ++to)
        spec.counts.push_back(columns == 1 ? block_count(c, from, from) : block_count(c, from, to));
    }
  }
  return PlanProblem(spec);
}

}  // namespace

int count_steps(const Case& c, int rank) {
  const auto collective = collective_of(c.primitive);
  if (!collective) return 0;
  const Algorithm* algorithm = find_algorithm(*collective, AlgorithmSpec::parse(c.algorithm).name);
  if (algorithm == nullptr) return 1;
  const PlanProblem problem = problem_of(c, *collective);
  const PlanRequest request = problem.request(rank);
  if (algorithm->refuse(request)) return 0;
  const Plan plan = algorithm->build(request);
  int steps = 0;
  Round round;
  for (std::size_t i = 0; i < plan.rounds; ++i) {
    plan.round(i, round);
    steps += static_cast<int>(round.steps().size());
  }
  return steps;
}

}  // namespace col::colcheck
