// Random floats, compared with a result that is as good as exact: a fold in long double, which adds at least 11 bits to
// float64 and 40 to float32.
//
// Bound: depth * ulp * sum|x|. A term of a sum over p ranks is rounded at most p + 1 times on its way (p - 1 additions,
// a scaling, a division), each time by half an ulp of 1 (u = 2^-24 in float32, 2^-53 in float64) of a partial result
// that is no larger than sum|x|; so sums, averages and scaled sums may be off by (p + 2) * u * sum|x|, where the one
// more is for the powers of u. A product is rounded p - 1 times: (p + 2) * u * |result|. 16-bit floats are summed in
// float32 and then rounded once: between the roundings of both ends of that range, every value is right, and no other.
#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/number_inputs.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/number_cases.hpp"

namespace col::colcheck {
namespace {

constexpr Operator kOperators[] = {Operator::sum, Operator::product, Operator::avg, Operator::premul_sum};

void cases(const Selection& selection, std::vector<Case>& all) {
  add_number_cases(
      selection,
      {.property = "rounding",
       .dtypes = kFloats,
       .operators = kOperators,
       .longest = 1500,
       .allows = [&](const Form& form, const Case& c) { return !is_careless(form, selection) || !is_half(c.dtype); }},
      all);
}

// Products of many ranks must not overflow or underflow in float16.
double octaves(const Case& c) {
  if (c.op == Operator::product) return 8.0 / c.ranks;
  return is_half(c.dtype) ? 4 : 12;
}

template <class T>
Finding check(Rank& rank, const Case& c) {
  const Reduction call = reduction_of(c, &broken_scale);
  const std::size_t count = input_count(c);
  const PerRank<T> inputs = ill_conditioned_inputs<T>(c.ranks, count, c.seed, octaves(c));
  const auto output = output_of(rank.group(), call, inputs[static_cast<std::size_t>(rank.rank())]);
  return Finding::of(problem_on_rank(call, rank.rank(), c.ranks, count, output, judge_any_fold(call, inputs)));
}

Finding run(Rank& rank, const Case& c) {
  return with_float(c.dtype, [&](auto element) { return check<decltype(element)>(rank, c); });
}

}  // namespace

const Property kRounding{"rounding",
                         "sums of random floats are off by no more than (ranks + 2) half ulps of sum|x|",
                         Property::Kind::group,
                         &cases,
                         &run,
                         OnGpus::results};

}  // namespace col::colcheck
