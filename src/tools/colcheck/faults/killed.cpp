// The cases of `killed`: SIGKILL before a step of an algorithm's plan.
//
// The number of steps comes from the plan builders. In --quick the first, the middle and the last step of one rank's
// plan are tried, the rank differing from case to case; in --full every step of every rank of four.
#include <algorithm>
#include <numeric>

#include "colcheck/faults/rows.hpp"

namespace col::colcheck {
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
