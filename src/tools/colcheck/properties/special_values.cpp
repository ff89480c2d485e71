// NaN (quiet, signalling, on each rank in turn, on all), infinities of both signs, their difference, zeros in all
// combinations of signs, and denormals. All of them are in every block of the vector. The results do not depend on the
// order of the ranks, except for the payload of a NaN, which is not checked. min and max of a NaN and anything are NaN,
// min of both zeros is -0 and max +0, and a denormal is not flushed to zero.
#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/special_inputs.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/number_cases.hpp"

namespace col::colcheck {
namespace {

constexpr Operator kOperators[] = {Operator::sum, Operator::product, Operator::avg,
                                   Operator::min, Operator::max,     Operator::premul_sum};

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::size_t before = all.size();
  add_number_cases(selection,
                   {.property = "special_values",
                    .dtypes = kFloats,
                    .operators = kOperators,
                    .quick_rows = 4,
                    .allows = [&](const Form& form, const Case&) { return !is_careless(form, selection); }},
                   all);
  for (std::size_t i = before; i < all.size(); ++i) {
    const std::size_t columns = special_columns<float>(all[i].ranks).size();
    const bool once = takes_blocks(all[i].primitive) || has_short_segments(all[i]);
    all[i].count = once ? columns : columns * static_cast<std::size_t>(all[i].ranks);
  }
}

// Powers of two, so that a scaled denormal is rounded at most where it is scaled.
double scale(int rank) {
  constexpr double kScales[] = {2, -1, 0.5};
  return kScales[rank % 3];
}

template <class T>
Finding check(Rank& rank, const Case& c) {
  const Reduction call = reduction_of(c, &scale);
  const std::size_t count = input_count(c);
  const PerRank<T> inputs = special_inputs(special_columns<T>(c.ranks), c.ranks, count);
  const auto output = output_of(rank.group(), call, inputs[static_cast<std::size_t>(rank.rank())]);
  return Finding::of(problem_on_rank(call, rank.rank(), c.ranks, count, output, judge_left_fold(call, inputs)));
}

Finding run(Rank& rank, const Case& c) {
  return with_float(c.dtype, [&](auto element) { return check<decltype(element)>(rank, c); });
}

}  // namespace

const Property kSpecialValues{"special_values",
                              "NaN, infinities, zeros of both signs and denormals come out as IEEE 754 has it",
                              Property::Kind::group,
                              &cases,
                              &run,
                              OnGpus::results};

}  // namespace col::colcheck
