// The simulator comes to an end with every algorithm, with times that make sense: no rank ends after the last one, and
// none of them beats what is impossible.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/plan_cases.hpp"

namespace col::colcheck {
namespace {

constexpr std::array kQuickRanges = {RankRange{1, 12}};
constexpr std::array kFullRanges = {RankRange{1, 12}, RankRange{13, 32}, RankRange{33, 64}};
constexpr std::size_t kElementBytes = 4;
// The bound and the simulation add up the same numbers in another order.
constexpr double kRounding = 1e-9;

void cases(const Selection& selection, std::vector<Case>& all) {
  if (selection.effort == Effort::quick)
    add_plan_cases(selection, "simulator", kQuickRanges, all);
  else
    add_plan_cases(selection, "simulator", kFullRanges, all);
}

// A machine: from fast to slow, one thing or another being what counts.
CostModel draw_model(std::mt19937_64& random) {
  const auto between = [&](double least, double most) {
    return least * std::pow(most / least, std::generate_canonical<double, 53>(random));
  };
  CostModel model;
  model.intra = {between(1e-8, 1e-3), between(1e-11, 1e-7)};
  model.gamma = between(1e-11, 1e-7);
  return model;
}

std::string problem_of(const Algorithm& algorithm, const PlanProblem& problem, std::size_t bytes,
                       const CostModel& model) {
  const Simulation result = simulate(problem, plans_of(algorithm, problem), model, kElementBytes, kElementBytes);
  if (result.rank_seconds.size() != static_cast<std::size_t>(problem.size()))
    return fmt::format("the times of {} ranks", result.rank_seconds.size());
  const double last = *std::max_element(result.rank_seconds.begin(), result.rank_seconds.end());
  if (!std::isfinite(result.seconds) || std::abs(last - result.seconds) > kRounding * last)
    return fmt::format("the last rank ends at {} s, all of it at {} s", last, result.seconds);
  const double bound = lower_bound_seconds(algorithm.collective, problem.size(), bytes, model);
  if (result.seconds < bound * (1 - kRounding))
    return fmt::format("it takes {} s, but cannot take less than {} s", result.seconds, bound);
  return {};
}

Finding run(Rank& /*rank*/, const Case& c) {
  const PlanSubject subject = PlanSubject::of(c);
  const RankRange range = RankRange::of(c.variant);
  std::mt19937_64 random(c.seed);
  for (int size = range.first; size <= range.last; ++size) {
    const std::size_t block = 1 + random() % 300, n = static_cast<std::size_t>(size);
    PlanProblem::Spec spec{.collective = subject.algorithm->collective, .size = size, .parameters = subject.parameters};
    const bool moves = c.primitive != Primitive::barrier;
    if (is_v_form(c.primitive))
      spec.counts = even_blocks(spec.collective, size, block);
    else if (moves)
      spec.count = row_of(spec.collective).out == Extent::vector ? block * n : block;
    const PlanProblem problem(spec);
    if (subject.algorithm->refuse(problem.request(0))) continue;
    const std::size_t bytes = moves ? block * n * kElementBytes : 0;
    const std::string wrong = problem_of(*subject.algorithm, problem, bytes, draw_model(random));
    if (!wrong.empty()) return Finding::fail(fmt::format("{}: {}", describe(spec), wrong));
  }
  return Finding::pass();
}

}  // namespace

const Property kSimulator{"simulator", "every algorithm's simulation ends, and is never faster than is possible",
                          Property::Kind::alone, &cases, &run};

}  // namespace col::colcheck
