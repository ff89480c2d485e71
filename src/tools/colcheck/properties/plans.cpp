// Plans themselves, which no rank has to execute.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include <col/select.hpp>

#include "colcheck/engine/draw.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// ---- Cases: an algorithm, and a range of group sizes

// Case::variant of such a case: two numbers in one.
struct RankRange {
  int first = 1, last = 1;
  std::uint64_t variant() const { return static_cast<std::uint64_t>(first) * 1000 + static_cast<std::uint64_t>(last); }
  static RankRange of(std::uint64_t variant) {
    return {static_cast<int>(variant / 1000), static_cast<int>(variant % 1000)};
  }
};

// Appends every built-in algorithm that the selection allows, with each of the ranges.
void add_plan_cases(Draw& draw, std::span<const RankRange> ranges) {
  for (const Form& form : draw.forms()) {
    if (form.built_in == nullptr) continue;
    for (const RankRange& range : ranges) draw.add("", form.primitive, range.variant(), 1).algorithm = form.algorithm;
  }
}

struct PlanSubject {
  const Algorithm* algorithm = nullptr;
  PlanParameters parameters = {};
};

// The algorithm of a case, and its parameters. A segment's bytes count as elements. Throws std::invalid_argument if
// there is no such algorithm.
PlanSubject subject_of(const Case& c) {
  const AlgorithmSpec spec = AlgorithmSpec::parse(c.algorithm);
  const auto collective = collective_of(c.primitive);
  const Algorithm* algorithm = collective ? find_algorithm(*collective, spec.name) : nullptr;
  if (algorithm == nullptr)
    throw std::invalid_argument(fmt::format("{} has no built-in algorithm '{}'", to_string(c.primitive), spec.name));
  return {algorithm, {.radix = spec.radix, .segment = spec.segment_bytes}};
}

// alltoallv has counts for every pair of ranks, the other v-forms one for each rank.
std::size_t rows_of(Collective collective, int size) {
  return collective == Collective::alltoallv ? static_cast<std::size_t>(size) : 1;
}

// The counts of a v-form in the form for PlanProblem: all equal to `block`, or drawn around it with many zeros.
// Symmetric: an alltoallv in which a rank receives as much as it sends.
std::vector<std::size_t> even_blocks(Collective collective, int size, std::size_t block) {
  return std::vector<std::size_t>(rows_of(collective, size) * static_cast<std::size_t>(size), block);
}

std::vector<std::size_t> uneven_blocks(Collective collective, int size, std::size_t block, bool symmetric,
                                       std::mt19937_64& random) {
  const auto n = static_cast<std::size_t>(size);
  std::vector<std::size_t> counts(rows_of(collective, size) * n, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t row = i / n, column = i % n;
    const std::uint64_t number = random();
    counts[i] = number % 3 == 0 ? 0 : number / 3 % (2 * block + 1);
    if (symmetric && column < row) counts[i] = counts[column * n + row];
  }
  return counts;
}

// "5 ranks, root 2, count 7, in place, widens"
std::string describe(const PlanProblem::Spec& spec) {
  std::string text = fmt::format("{} ranks", spec.size);
  if (spec.root != 0) text += fmt::format(", root {}", spec.root);
  if (spec.counts.empty())
    text += fmt::format(", count {}", spec.count);
  else
    text += ", blocks of different lengths";
  if (spec.in_place) text += ", in place";
  if (spec.widens) text += ", widens";
  if (spec.wide_input) text += ", wide input";
  return text;
}

// ---- plans: What every algorithm would do, carried out symbolically for all ranks together: each output holds every
// contribution exactly once, messages pair, nothing can deadlock even if every send waits for its receive, no buffer is
// overrun.

// A quick run has the first two.
constexpr std::array kProofs = {RankRange{1, 8}, RankRange{9, 16}, RankRange{17, 32}, RankRange{33, 64}};

void add_plans(Draw& draw) {
  add_plan_cases(draw, std::span(kProofs).first(draw.quick() ? 2 : 4));
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

std::string problem_with_plan(const Algorithm& algorithm, const PlanProblem& problem, int sample) {
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
Finding run_plans(Rank& /*rank*/, const Case& c) {
  const PlanSubject subject = subject_of(c);
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
      const std::string wrong = problem_with_plan(*subject.algorithm, problem, static_cast<int>(random() % n));
      if (!wrong.empty()) return Finding::fail(fmt::format("{}: {}", describe(spec), wrong));
    }
  }
  return Finding::pass();
}

// ---- simulator: The simulator comes to an end with every algorithm, with times that make sense: no rank ends after
// the last one, and none of them beats what is impossible.

// A quick run has the first.
constexpr std::array kSimulations = {RankRange{1, 12}, RankRange{13, 32}, RankRange{33, 64}};
constexpr std::size_t kElementBytes = 4;
// The bound and the simulation add up the same numbers in another order.
constexpr double kRounding = 1e-9;

void add_simulations(Draw& draw) {
  add_plan_cases(draw, std::span(kSimulations).first(draw.quick() ? 1 : 3));
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

std::string problem_with_simulation(const Algorithm& algorithm, const PlanProblem& problem, std::size_t bytes,
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

Finding run_simulation(Rank& /*rank*/, const Case& c) {
  const PlanSubject subject = subject_of(c);
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
    const std::string wrong = problem_with_simulation(*subject.algorithm, problem, bytes, draw_model(random));
    if (!wrong.empty()) return Finding::fail(fmt::format("{}: {}", describe(spec), wrong));
  }
  return Finding::pass();
}

}  // namespace

const Property kPlans{"plans", "every algorithm is proved right symbolically: each contribution once, no deadlock",
                      Property::Kind::alone, &add_plans, &run_plans};
const Property kSimulator{"simulator", "every algorithm's simulation ends, and is never faster than is possible",
                          Property::Kind::alone, &add_simulations, &run_simulation};

}  // namespace col::colcheck
