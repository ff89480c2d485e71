#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include <col/plan.hpp>

#include "plan/cost_terms.hpp"
#include "plan/support.hpp"

namespace col {
namespace {

// The least that some rank must do, after E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective
// communication: theory, practice, and experience, Concurrency and Computation 19(13), 2007: messages that follow from
// each other, bytes through one port, bytes added.
struct Least {
  int messages = 0;
  double bytes = 0, added = 0;  // fractions of n
};

Least least_of(Collective collective, int p) {
  const int l = plan::ceil_log2(p);
  const double f = plan::CostTerms::fraction(p);
  const CollectiveRow& row = row_of(collective);
  if (row.is_message || row.has_private_counts()) return {};  // all of it may be at home already
  const double added = row.folds == Folds::below_rank ? static_cast<double>(p - 2) / p : f;
  return {l, row.out == Extent::nothing ? 0 : row.bus_factor(p), row.reduces() ? added : 0};
}

}  // namespace

std::optional<double> closed_form_seconds(const Algorithm& algorithm, int size, std::size_t bytes,
                                          const CostModel& model, const PlanParameters& parameters) {
  if (algorithm.cost.seconds == nullptr) return std::nullopt;
  const bool moves_nothing = bytes == 0 && row_of(algorithm.collective).has_data();
  if (size <= 1 || moves_nothing) return 0;
  return algorithm.cost.seconds({.p = size,
                                 .n = static_cast<double>(bytes),
                                 .a = model.intra.alpha,
                                 .b = model.intra.beta,
                                 .g = model.gamma,
                                 .parameters = parameters});
}

std::optional<double> closed_form_seconds(const Algorithm& algorithm, const PlanProblem& problem,
                                          const CostModel& model, std::size_t element_size) {
  const PlanProblem::Spec& spec = problem.spec();
  const auto nodes = std::span(spec.node_of_rank);
  if (std::adjacent_find(nodes.begin(), nodes.end(), std::not_equal_to<>()) != nodes.end()) return std::nullopt;
  const CollectiveRow& row = row_of(algorithm.collective);
  const bool whole_vectors = row.in == Extent::vector || row.out == Extent::vector;
  const std::size_t bytes = spec.count * element_size * (whole_vectors ? 1 : static_cast<std::size_t>(spec.size));
  // Formulas count a segment in elements of their own size.
  PlanParameters parameters = spec.parameters;
  const std::size_t segment = parameters.segment == 0 ? plan::kDefaultSegment : parameters.segment;
  parameters.segment =
      std::max<std::size_t>(1, segment * element_size / static_cast<std::size_t>(plan::CostTerms::kSegmentElementSize));
  return closed_form_seconds(algorithm, spec.size, bytes, model, parameters);
}

// Each of the three is necessary by itself, but they may overlap: the greatest, not the sum. For ranks on several nodes
// give it the faster link as `intra`.
double lower_bound_seconds(Collective collective, int size, std::size_t bytes, const CostModel& model) {
  if (size <= 1 || (bytes == 0 && row_of(collective).has_data())) return 0;
  const Least least = least_of(collective, size);
  const auto n = static_cast<double>(bytes);
  return std::max(
      {least.messages * model.intra.alpha, least.bytes * n * model.intra.beta, least.added * n * model.gamma});
}

}  // namespace col
