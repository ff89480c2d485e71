// 16-bit floats are summed, averaged and multiplied in float32 over all ranks, and rounded once. 2048 + 1 + 1 is 2050
// in float16, and 2048 when it is rounded on the way; the input of every rank has the 2048 in turn, so that no order of
// the ranks hides it. Scaled sums and products are of random numbers, and must be within what float32 may be off by.
//
// With Options::compress, partial results are rounded to 16 bits as they travel: then every result may be off by
// ((1 + u)^(p + 3) - 1) * sum|x| over p ranks, u = 2^-11 for float16 and 2^-8 for bfloat16.
#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/number_inputs.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/number_cases.hpp"

namespace col::colcheck {
namespace {

constexpr Operator kOperators[] = {Operator::sum, Operator::avg, Operator::product, Operator::premul_sum};
constexpr std::uint64_t kRoundedOnce = 0, kCompressed = 1;
constexpr std::uint64_t kVariants[] = {kRoundedOnce, kRoundedOnce, kRoundedOnce, kCompressed};

void cases(const Selection& selection, std::vector<Case>& all) {
  add_number_cases(selection,
                   {.property = "half_sums",
                    .dtypes = kHalves,
                    .operators = kOperators,
                    .variants = kVariants,
                    .fewest_ranks = 2,  // and from three on, rounding on the way shows in sums
                    .longest = 1500,
                    .allows =
                        [&](const Form& form, const Case& c) {
                          return !is_careless(form, selection) && (c.variant == kRoundedOnce || !form.is_native());
                        }},
                   all);
}

// Whether float32 holds all partial results, whatever the order.
bool is_exact(const Case& c) {
  return c.op == Operator::sum || c.op == Operator::avg;
}

template <class T>
PerRank<T> inputs_of(const Case& c, std::size_t count) {
  if (is_exact(c)) return beside_a_large_number<T>(c.ranks, count, 1);
  return ill_conditioned_inputs<T>(c.ranks, count, c.seed, c.op == Operator::product ? 8.0 / c.ranks : 4);
}

template <class T>
Finding check(Rank& rank, const Case& c) {
  Reduction call = reduction_of(c, &broken_scale);
  call.compress = c.variant == kCompressed;
  const std::size_t count = input_count(c);
  const PerRank<T> inputs = inputs_of<T>(c, count);
  const auto output = output_of(rank.group(), call, inputs[static_cast<std::size_t>(rank.rank())]);
  const auto problem = [&](auto judge) { return problem_on_rank(call, rank.rank(), c.ranks, count, output, judge); };
  if (call.compress) return Finding::of(problem(judge_compressed_fold(call, inputs)));
  return Finding::of(is_exact(c) ? problem(judge_left_fold(call, inputs)) : problem(judge_any_fold(call, inputs)));
}

Finding run(Rank& rank, const Case& c) {
  return with_float(c.dtype, [&](auto element) { return check<decltype(element)>(rank, c); });
}

}  // namespace

const Property kHalfSums{"half_sums",
                         "16-bit floats are summed in float32 over all ranks and rounded once",
                         Property::Kind::group,
                         &cases,
                         &run,
                         OnGpus::results};

}  // namespace col::colcheck
