// What every algorithm would do, carried out symbolically for all ranks together: each output holds every contribution
// exactly once, messages pair, nothing can deadlock even if every send waits for its receive, no buffer is overrun.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/plan_cases.hpp"

namespace col::colcheck {
namespace {

constexpr std::array kQuickRanges = {RankRange{1, 8}, RankRange{9, 16}};
constexpr std::array kFullRanges = {RankRange{1, 8}, RankRange{9, 16}, RankRange{17, 32}, RankRange{33, 64}};

void cases(const Selection& selection, std::vector<Case>& all) {
  if (selection.effort == Effort::quick)
    add_plan_cases(selection, "plans", kQuickRanges, all);
  else
    add_plan_cases(selection, "plans", kFullRanges, all);
}

// In place or not, and in which types partial results and inputs are.
struct Mode {
  bool in_place = false, widens = false, wide_input = false;
};

std::vector<Mode> modes_of(Primitive primitive) {
  if (!has_in_place(primitive)) return {{}};
  std::vector<Mode> modes = {{}, {.in_place = true}};
  if (!is_reduction(primitive)) return modes;
  modes.push_back({.widens = true});
  modes.push_back({.in_place = true, .widens = true});
  modes.push_back({.widens = true, .wide_input = true});
  return modes;
}

// What a rank's plan says of a round must not depend on which rounds were asked for before.
std::string forgetful(const Plan& plan, int rank) {
  std::vector<Round> forwards(plan.rounds);
  for (std::size_t i = 0; i < plan.rounds; ++i) plan.round(i, forwards[i]);
  Round again;
  for (std::size_t i = plan.rounds; i-- > 0;) {
    plan.round(i, again);
    if (!std::ranges::equal(again.steps(), forwards[i].steps()))
      return fmt::format("round {} of rank {} is another one when it is asked for again", i, rank);
  }
  return {};
}

std::string problem_of(const Algorithm& algorithm, const PlanProblem& problem, int sample) {
  const auto refusal = algorithm.refuse(problem.request(0));
  for (int rank = 1; rank < problem.size(); ++rank) {
    if (algorithm.refuse(problem.request(rank)) != refusal)
      return fmt::format("rank {} refuses or serves it, unlike rank 0", rank);
  }
  if (refusal) return {};
  const PlanOfRank plans = plans_of(algorithm, problem);
  const Verdict verdict = verify(problem, plans);
  if (!verdict.good) return verdict.problem;
  if (verdict.order < algorithm.order)
    return fmt::format("declared to combine in {} order, but combines in {} order", to_string(algorithm.order),
                       to_string(verdict.order));
  return forgetful(plans(sample), sample);
}

// All counts; modes and roots go round from case to case, so that neighbouring sizes together have all of them.
Finding run(Rank& /*rank*/, const Case& c) {
  const PlanSubject subject = PlanSubject::of(c);
  const std::vector<Mode> modes = modes_of(c.primitive);
  const RankRange range = RankRange::of(c.variant);
  std::mt19937_64 random(c.seed);
  std::size_t turn = c.seed % modes.size();
  for (int size = range.first; size <= range.last; ++size) {
    const auto n = static_cast<std::size_t>(size);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n, n + 1, std::size_t{67}}) {
      const Mode& mode = modes[turn++ % modes.size()];
      PlanProblem::Spec spec{.collective = subject.algorithm->collective,
                             .size = size,
                             .widens = mode.widens,
                             .wide_input = mode.wide_input,
                             .in_place = mode.in_place,
                             .parameters = subject.parameters};
      if (is_v_form(c.primitive))
        spec.counts = uneven_blocks(spec.collective, size, count, mode.in_place, random);
      else if (c.primitive != Primitive::barrier)
        spec.count = count;
      if (is_rooted(c.primitive)) spec.root = static_cast<int>(random() % n);
      const PlanProblem problem(spec);
      const std::string wrong = problem_of(*subject.algorithm, problem, static_cast<int>(random() % n));
      if (!wrong.empty()) return Finding::fail(fmt::format("{}: {}", describe(spec), wrong));
    }
  }
  return Finding::pass();
}

}  // namespace

const Property kPlans{"plans", "every algorithm is proved right symbolically: each contribution once, no deadlock",
                      Property::Kind::alone, &cases, &run};

}  // namespace col::colcheck
