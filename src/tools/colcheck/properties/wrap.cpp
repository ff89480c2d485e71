// Integers wrap, whatever the order: sums, products and scaled sums of numbers of all sizes, with the largest and the
// smallest among them. Averages are of the wrapped sum, rounded toward zero; products have the right sign; the bitwise
// operators look at every bit.
#include <array>
#include <limits>

#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/engine/number_inputs.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/number_cases.hpp"

namespace col::colcheck {
namespace {

constexpr Operator kOperators[] = {Operator::sum, Operator::product, Operator::min,
                                   Operator::max, Operator::avg,     Operator::band,
                                   Operator::bor, Operator::bxor,    Operator::premul_sum};

void cases(const Selection& selection, std::vector<Case>& all) {
  add_number_cases(selection,
                   {.property = "wrap",
                    .dtypes = kIntegers,
                    .operators = kOperators,
                    .quick_rows = 3,
                    .full_rows = 24,
                    .longest = 1500},
                   all);
}

// Five kinds of elements take turns.
template <class T>
T element(const Case& c, int rank, std::size_t i) {
  using Limits = std::numeric_limits<T>;
  constexpr std::array<T, 6> kExtremes = {Limits::min(), Limits::max(), static_cast<T>(-1),
                                          T{0},          T{1},          static_cast<T>(Limits::max() / 2 + 1)};
  const std::uint64_t random = mix(c.seed, static_cast<std::uint64_t>(rank), i);
  const std::uint64_t common = mix(c.seed, 40, i);  // equal on all ranks
  switch ((c.seed + i) % 5) {
    case 0:  // any bits
      return static_cast<T>(random);
    case 1:  // extremes among themselves
      return kExtremes[random % kExtremes.size()];
    case 2:  // the same extreme everywhere
      return kExtremes[common % kExtremes.size()];
    case 3:  // one rank at an end of the range, and the others push it over
      if (static_cast<int>(common % static_cast<std::uint64_t>(c.ranks)) == rank)
        return common >> 32 & 1 ? Limits::max() : Limits::min();
      return common >> 32 & 1 ? T{1} : static_cast<T>(-1);
    default:  // small ones of both signs: averages with a remainder, products that are not all zeros
      return static_cast<T>(static_cast<int>(random % 15) - 7);
  }
}

template <class T>
Finding check(Rank& rank, const Case& c) {
  const Reduction call = reduction_of(c, &whole_scale);
  const std::size_t count = input_count(c);
  const auto inputs = make_inputs<T>(c.ranks, count, [&](int r, std::size_t i) { return element<T>(c, r, i); });
  const auto output = output_of(rank.group(), call, inputs[static_cast<std::size_t>(rank.rank())]);
  return Finding::of(problem_on_rank(call, rank.rank(), c.ranks, count, output, judge_left_fold(call, inputs)));
}

Finding run(Rank& rank, const Case& c) {
  return with_integer(c.dtype, [&](auto value) { return check<decltype(value)>(rank, c); });
}

}  // namespace

const Property kWrap{
    "wrap",         "integers wrap, and their averages round toward zero", Property::Kind::group, &cases, &run,
    OnGpus::results};

}  // namespace col::colcheck
