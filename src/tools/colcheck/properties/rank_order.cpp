// Options::deterministic: the result is ((x0 op x1) op x2) op …, to the bit, by whatever algorithm, at any length. An
// algorithm that combines in another order is refused by name, before any data moves; the group goes on. A backend's
// own collective is either refused or keeps the order.
#include <optional>
#include <vector>

#include <col/select.hpp>

#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/number_inputs.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/number_cases.hpp"

namespace col::colcheck {
namespace {

constexpr Operator kOperators[] = {Operator::sum, Operator::product, Operator::avg, Operator::premul_sum};

bool keeps_rank_order(Primitive primitive, const std::string& algorithm) {
  if (algorithm.empty()) return true;
  const Algorithm* built_in = find_algorithm(*collective_of(primitive), AlgorithmSpec::parse(algorithm).name);
  return built_in != nullptr && built_in->order == FoldOrder::rank_order;
}

bool is_native(Primitive primitive, const std::string& algorithm) {
  return !algorithm.empty() &&
         find_algorithm(*collective_of(primitive), AlgorithmSpec::parse(algorithm).name) == nullptr;
}

bool is_kept(const Form& form) {
  return is_reduction(form.primitive) && keeps_rank_order(form.primitive, form.algorithm);
}

bool is_refused(const Form& form) {
  return is_reduction(form.primitive) && !keeps_rank_order(form.primitive, form.algorithm);
}

void cases(const Selection& selection, std::vector<Case>& all) {
  add_number_cases(selection,
                   {.property = "rank_order",
                    .dtypes = kFloats,
                    .operators = kOperators,
                    .quick_rows = 5,
                    .full_rows = 24,
                    .shortest = 0,  // the order must not depend on the length
                    .takes = &is_kept},
                   all);
  constexpr DType kOne[] = {DType::float32};
  constexpr Operator kSum[] = {Operator::sum};
  add_number_cases(selection,
                   {.property = "rank_order",
                    .dtypes = kOne,
                    .operators = kSum,
                    .quick_rows = 1,
                    .full_rows = 3,
                    .fewest_ranks = 2,
                    .takes = &is_refused},
                   all);
}

// Empty when it is refused, in the right words.
template <class T>
std::string problem_with_refusal(Rank& rank, const Reduction& call, const std::vector<T>& input,
                                 std::optional<std::vector<T>>& output) {
  try {
    output = output_of(rank.group(), call, input);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument && error.message().find("rank order") != std::string::npos)
      return {};
    return fmt::format("{} was refused, but with: {}", call.algorithm, error.what());
  }
  return fmt::format("{} was not refused, though it does not promise rank order", call.algorithm);
}

template <class T>
Finding check(Rank& rank, const Case& c) {
  Reduction call = reduction_of(c, &broken_scale);
  call.deterministic = true;
  const std::size_t count = input_count(c);
  const PerRank<T> inputs = ill_conditioned_inputs<T>(c.ranks, count, c.seed);
  const auto& input = inputs[static_cast<std::size_t>(rank.rank())];
  std::optional<std::vector<T>> output;
  if (!keeps_rank_order(c.primitive, c.algorithm)) {
    std::string problem = problem_with_refusal(rank, call, input, output);
    if (!problem.empty() && !(output && is_native(c.primitive, c.algorithm))) return Finding::fail(std::move(problem));
    call.algorithm.clear();  // the group must serve the next call
  }
  if (!output) output = output_of(rank.group(), call, input);
  return Finding::of(problem_on_rank(call, rank.rank(), c.ranks, count, *output, judge_left_fold(call, inputs)));
}

Finding run(Rank& rank, const Case& c) {
  return with_float(c.dtype, [&](auto element) { return check<decltype(element)>(rank, c); });
}

}  // namespace

const Property kRankOrder{"rank_order",
                          "deterministic calls combine in rank order, to the bit, or are refused",
                          Property::Kind::group,
                          &cases,
                          &run,
                          OnGpus::results};

}  // namespace col::colcheck
