// The cases of drills.
#include <algorithm>
#include <numeric>
#include <utility>

#include <col/plan.hpp>
#include <col/select.hpp>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/job.hpp"
#include "colcheck/faults/rows.hpp"

namespace col::colcheck {
namespace {

// More processes than this are too many for a drill.
constexpr int kMostRanks = 8;

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

std::vector<int> drill_ranks(const Selection& selection, Choice::Sizes sizes) {
  using Sizes = Choice::Sizes;
  std::vector<int> usual, more, fewer;
  for (const int ranks : selection.ranks) {
    if (ranks == 3 || ranks == 4) usual.push_back(ranks);
    if (ranks > 4 && ranks <= kMostRanks) more.push_back(ranks);
    if (ranks == 2 && sizes != Sizes::least_three) fewer.push_back(ranks);
  }
  if (usual.empty()) usual = more.empty() ? fewer : std::vector{more.front()};
  if (usual.size() > 1 && sizes == Sizes::fewest) usual = {usual.front()};
  if (usual.size() > 1 && sizes == Sizes::most) usual = {usual.back()};
  return usual;
}

std::vector<std::string> drill_backends(const Selection& selection) {
  std::vector<std::string> names = selection.backends;
  if (!are_ranks_elsewhere()) std::erase_if(names, is_over_hosts);
  return names;
}

int drawn_rank(const Case& c) {
  return static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
}

void add_cases(const Choice& choice, Draw& draw) {
  if (choice.add != nullptr) return choice.add(draw);
  const std::vector<int> sizes = drill_ranks(draw.selection(), choice.sizes);
  if (sizes.empty()) return;
  const auto& variants = draw.quick() || choice.full_variants.empty() ? choice.variants : choice.full_variants;
  for (const std::string& backend : drill_backends(draw.selection())) {
    for (std::size_t i = 0; i < (draw.quick() ? choice.quick_calls : choice.calls.size()); ++i) {
      const NamedCall& call = choice.calls[i];
      std::vector<Case> fitting;
      for (const std::uint64_t variant : variants) {
        Case c = draw.next(backend, call.primitive, variant, in_turn(sizes, draw.number()));
        c.algorithm = call.algorithm;
        if (call.primitive != Primitive::barrier) {
          c.dtype = choice.dtype;
          c.count = choice.every_other_count > 0 && draw.number() % 2 != 0 ? choice.every_other_count : choice.count;
        }
        if (choice.fits == nullptr || choice.fits(c)) fitting.push_back(std::move(c));
      }
      if (choice.in_turn && draw.quick() && !fitting.empty())
        fitting = {in_turn(fitting, mix(draw.selection().seed, draw.number()))};
      for (Case& c : fitting) draw.add(std::move(c));
    }
  }
}

Case numbered(Case c, int number) {
  c.seed = mix(c.seed, static_cast<std::uint64_t>(number));
  return c;
}

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

// ---- killed: SIGKILL before a step of an algorithm's plan
//
// The number of steps comes from the plan builders. In --quick the first, the middle and the last step of one rank's
// plan are tried, the rank differing from case to case; in --full every step of every rank of four.

namespace {

// In one case of four what a rank sends does not fit the buffers between ranks, so that the kill finds transfers
// half done.
constexpr std::size_t kSmall = 37, kLarge = 60'000;

// Values of Case::variant: kThree means the first, the middle and the last step, kEvery all.
constexpr std::uint64_t kRanks = 1000, kThree = 999, kEvery = 998;

int steps_of(const Case& c, int rank) {
  return count_steps(numbered(c, drill_of(c).way_of(c).calls), rank);
}

// A rank without data may have nothing to do in a v-form.
void add_blows(Case c, Draw& draw) {
  const int first = drawn_rank(c);
  for (int i = 0; i < c.ranks; ++i) {
    const int victim = (first + i) % c.ranks;
    if (steps_of(c, victim) == 0) continue;
    c.variant = static_cast<std::uint64_t>(victim) * kRanks + (draw.quick() ? kThree : kEvery);
    draw.add(c);
    if (draw.quick()) return;
  }
}

// Buffers on GPUs make no difference to the steps of a plan.
bool is_struck(const Form& form, const std::string& backend, const Selection& selection) {
  if (selection.is_about_gpus() && form.built_in != nullptr && selection.effort == Effort::quick) return false;
  const bool parametrised = form.algorithm.find(':') != std::string::npos;
  return !form.algorithm.empty() && (!parametrised || !selection.algorithms.empty()) &&
         (!form.is_native() || form.backend == backend);
}

}  // namespace

void add_killed(Draw& draw) {
  const std::vector<int> sizes = drill_ranks(draw.selection());
  if (sizes.empty()) return;
  for (const std::string& backend : drill_backends(draw.selection())) {
    for (const Form& form : draw.forms()) {
      if (!is_struck(form, backend, draw.selection())) continue;
      int ranks = draw.quick() ? in_turn(sizes, draw.number()) : sizes.back();
      if (!serves(form, ranks)) ranks = sizes.back();
      if (!serves(form, ranks)) continue;
      Case c = draw.next(backend, form.primitive, 0, ranks);
      c.algorithm = form.algorithm;
      if (form.primitive != Primitive::barrier) {
        c.dtype = DType::int32;
        c.count = draw.number() % 4 == 0 ? kLarge : kSmall;
      }
      add_blows(c, draw);
    }
  }
}

int killed_rank(const Case& c) {
  return static_cast<int>(c.variant / kRanks);
}

std::vector<Case> killed_steps(const Case& c) {
  const std::uint64_t step = planned_step(c);
  if (step != kThree && step != kEvery) return {c};
  const int count = steps_of(c, killed_rank(c));
  std::vector<int> steps(static_cast<std::size_t>(count));
  std::iota(steps.begin(), steps.end(), 0);
  if (step == kThree && count > 0) steps = {0, count / 2, count - 1};
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::vector<Case> alone(steps.size(), c);
  for (std::size_t i = 0; i < steps.size(); ++i)
    alone[i].variant = c.variant - step + static_cast<std::uint64_t>(steps[i]);
  return alone;
}

std::uint64_t planned_step(const Case& c) {
  return c.variant % kRanks;
}

}  // namespace col::colcheck
