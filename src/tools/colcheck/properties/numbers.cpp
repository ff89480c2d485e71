// Reductions of numbers give the right ones.
#include <array>
#include <limits>

#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/engine/number_inputs.hpp"
#include "colcheck/engine/special_inputs.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/number_cases.hpp"

namespace col::colcheck {
namespace {

// Makes the call, and judges this rank's output.
template <class T, class Judge>
Finding judged(Rank& rank, const Case& c, const Reduction& call, const PerRank<T>& inputs, Judge judge) {
  const auto output = output_of(rank.group(), call, inputs[static_cast<std::size_t>(rank.rank())]);
  return Finding::of(problem_on_rank(call, rank.rank(), c.ranks, input_count(c), output, judge));
}

// ---- rounding: Random floats, compared with a result that is as good as exact: a fold in long double, which adds at
// least 11 bits to float64 and 40 to float32.
//
// Bound: depth * ulp * sum|x|. A term of a sum over p ranks is rounded at most p + 1 times on its way (p - 1 additions,
// a scaling, a division), each time by half an ulp of 1 (u = 2^-24 in float32, 2^-53 in float64) of a partial result
// that is no larger than sum|x|; so sums, averages and scaled sums may be off by (p + 2) * u * sum|x|, where the one
// more is for the powers of u. A product is rounded p - 1 times: (p + 2) * u * |result|. Narrow floats are summed in
// float32 and then rounded once: between the roundings of both ends of that range, every value is right, and no other.

void add_rounding(Draw& draw) {
  add_number_cases(draw,
                   {.dtypes = kFloats, .operators = kScaling, .longest = 1500, .allows = [&](auto& form, auto& c) {
                      return !is_careless(form, draw.selection()) || !is_narrow(c.dtype);
                    }});
}

// Products of many ranks must not overflow or underflow in float16; those of 8 bits take less.
double octaves(const Case& c) {
  const bool is_float8 = is_narrow(c.dtype) && size_of(c.dtype) == 1;
  if (c.op == Operator::product) return (is_float8 ? 5.0 : 8.0) / c.ranks;
  if (is_float8) return 2;
  return is_narrow(c.dtype) ? 4 : 12;
}

Finding run_rounding(Rank& rank, const Case& c) {
  return with_numbers<false>(c.dtype, [&](auto element) {
    using T = decltype(element);
    const Reduction call = reduction_of(c, &broken_scale);
    const PerRank<T> inputs = ill_conditioned_inputs<T>(c.ranks, input_count(c), c.seed, octaves(c));
    return judged(rank, c, call, inputs, judge_any_fold(call, inputs));
  });
}

// ---- half_sums: narrow floats are summed, averaged and multiplied in float32 over all ranks, and rounded once. 2048 +
// 1 + 1 is 2050 in float16, and 2048 when it is rounded on the way; the input of every rank has the 2048 in turn, so
// that no order of the ranks hides it. Scaled sums and products are of random numbers, and must be within what float32
// may be off by.
//
// With Options::compress, partial results are rounded to the type as they travel: then every result may be off by
// ((1 + u)^(p + 3) - 1) * sum|x| over p ranks, with u as compressed_fold() has it.

constexpr Operator kInFloat32[] = {Operator::sum, Operator::avg, Operator::product, Operator::premul_sum};
constexpr std::uint64_t kRoundedOnce = 0, kCompressed = 1;
constexpr std::uint64_t kMostlyOnce[] = {kRoundedOnce, kRoundedOnce, kRoundedOnce, kCompressed};

// From three ranks on, rounding on the way shows in sums.
void add_half_sums(Draw& draw) {
  const auto allows = [&](const Form& form, const Case& c) {
    return !is_careless(form, draw.selection()) && (c.variant == kRoundedOnce || !form.is_native());
  };
  add_number_cases(
      draw, {.dtypes = kNarrow, .operators = kInFloat32, .variants = kMostlyOnce, .longest = 1500, .allows = allows});
}

// Whether float32 holds all partial results, whatever the order.
bool is_exact(const Case& c) {
  return c.op == Operator::sum || c.op == Operator::avg;
}

template <class T>
PerRank<T> inputs_of(const Case& c, std::size_t count) {
  if (is_exact(c)) return beside_a_large_number<T>(c.ranks, count, 1);
  return ill_conditioned_inputs<T>(c.ranks, count, c.seed, octaves(c));
}

Finding run_half_sums(Rank& rank, const Case& c) {
  return with_numbers<false>(c.dtype, [&](auto element) {
    using T = decltype(element);
    Reduction call = reduction_of(c, &broken_scale);
    call.compress = c.variant == kCompressed;
    const PerRank<T> inputs = inputs_of<T>(c, input_count(c));
    if (call.compress) return judged(rank, c, call, inputs, judge_compressed_fold(call, inputs));
    if (is_exact(c)) return judged(rank, c, call, inputs, judge_left_fold(call, inputs));
    return judged(rank, c, call, inputs, judge_any_fold(call, inputs));
  });
}

// ---- special_values: NaN (quiet, signalling, on each rank in turn, on all), infinities of both signs, their
// difference, zeros in all combinations of signs, and denormals. All of them are in every block of the vector. The
// results do not depend on the order of the ranks, except for the payload of a NaN, which is not checked. min and max
// of a NaN and anything are NaN, min of both zeros is -0 and max +0, and a denormal is not flushed to zero.

void add_special_values(Draw& draw) {
  const auto allows = [&](const Form& form, const Case&) { return !is_careless(form, draw.selection()); };
  const auto adapt = [](Case& c) {
    const std::size_t columns = special_columns<float>(c.ranks).size();
    const bool once = takes_blocks(c.primitive) || has_short_segments(c);
    c.count = once ? columns : columns * static_cast<std::size_t>(c.ranks);
  };
  add_number_cases(draw,
                   {.dtypes = kFloats, .operators = kOrdering, .quick_rows = 4, .allows = allows, .adapt = adapt});
}

// Powers of two, so that a scaled denormal is rounded at most where it is scaled.
double scale(int rank) {
  constexpr double kScales[] = {2, -1, 0.5};
  return kScales[rank % 3];
}

Finding run_special_values(Rank& rank, const Case& c) {
  return with_numbers<false>(c.dtype, [&](auto element) {
    using T = decltype(element);
    const Reduction call = reduction_of(c, &scale);
    const PerRank<T> inputs = special_inputs(special_columns<T>(c.ranks), c.ranks, input_count(c));
    return judged(rank, c, call, inputs, judge_left_fold(call, inputs));
  });
}

// ---- wrap: Integers wrap, whatever the order: sums, products and scaled sums of numbers of all sizes, with the
// largest and the smallest among them. Averages are of the wrapped sum, rounded toward zero; products have the right
// sign; the bitwise operators look at every bit.

constexpr Operator kAll[] = {Operator::sum,  Operator::product, Operator::min,  Operator::max,       Operator::avg,
                             Operator::band, Operator::bor,     Operator::bxor, Operator::premul_sum};

void add_wrap(Draw& draw) {
  add_number_cases(draw, {.dtypes = kIntegers, .operators = kAll, .full_rows = 24, .longest = 1500});
}

// Five kinds of elements take turns.
template <class T>
T wrapping_element(const Case& c, int rank, std::size_t i) {
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

Finding run_wrap(Rank& rank, const Case& c) {
  return with_numbers<true>(c.dtype, [&](auto value) {
    using T = decltype(value);
    const Reduction call = reduction_of(c, &whole_scale);
    const auto inputs =
        make_inputs<T>(c.ranks, input_count(c), [&](int r, std::size_t i) { return wrapping_element<T>(c, r, i); });
    return judged(rank, c, call, inputs, judge_left_fold(call, inputs));
  });
}

}  // namespace

const Property kRounding =
    in_group("rounding", "sums of random floats are off by no more than (ranks + 2) half ulps of sum|x|", &add_rounding,
             &run_rounding, OnGpus::results);
const Property kHalfSums =
    in_group("half_sums", "floats of 8 and 16 bits are summed in float32 over all ranks and rounded once",
             &add_half_sums, &run_half_sums, OnGpus::results, 2);
const Property kSpecialValues =
    in_group("special_values", "NaN, infinities, zeros of both signs and denormals come out as IEEE 754 has it",
             &add_special_values, &run_special_values, OnGpus::results);
const Property kWrap =
    in_group("wrap", "integers wrap, and their averages round toward zero", &add_wrap, &run_wrap, OnGpus::results);

}  // namespace col::colcheck
