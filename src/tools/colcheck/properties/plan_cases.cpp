#include "colcheck/properties/plan_cases.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include <col/select.hpp>

#include "colcheck/engine/forms.hpp"
#include "colcheck/engine/mix.hpp"

namespace col::colcheck {
namespace {

// alltoallv has counts for every pair of ranks, the other v-forms one for each rank.
std::size_t rows_of(Collective collective, int size) {
  return collective == Collective::alltoallv ? static_cast<std::size_t>(size) : 1;
}

}  // namespace

void add_plan_cases(const Selection& selection, std::string_view property, std::span<const RankRange> ranges,
                    std::vector<Case>& cases) {
  std::uint64_t number = 0;
  for (const Form& form : forms_of(selection)) {
    if (form.built_in == nullptr) continue;
    for (const RankRange& range : ranges) {
      Case c;
      c.property = property;
      c.primitive = form.primitive;
      c.algorithm = form.algorithm;
      c.variant = range.variant();
      c.seed = mix(selection.seed, 66, ++number);
      cases.push_back(std::move(c));
    }
  }
}

PlanSubject PlanSubject::of(const Case& c) {
  const AlgorithmSpec spec = AlgorithmSpec::parse(c.algorithm);
  const auto collective = collective_of(c.primitive);
  const Algorithm* algorithm = collective ? find_algorithm(*collective, spec.name) : nullptr;
  if (algorithm == nullptr)
    throw std::invalid_argument(fmt::format("{} has no built-in algorithm '{}'", to_string(c.primitive), spec.name));
  return {algorithm, {.radix = spec.radix, .segment = spec.segment_bytes}};
}

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

}  // namespace col::colcheck
