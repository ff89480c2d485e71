// What reductions must give: the fold in rank order as <col/group.hpp> promises it, and what another order may make of
// it. Written for clarity, and without anything of the library but its conversions of 16-bit floats.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "support/reductions.hpp"

namespace col::test {

// The type that partial results are kept in, and the elements in it.
template <class T>
using Partial = std::conditional_t<is_half_v<T>, float, T>;

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<Partial<T>>(value));
}

template <class T>
std::string show(T value) {
  return fmt::format("{} ({:#x})", static_cast<Partial<T>>(value), bits_of(value));
}

// The lesser; a NaN before any number, -0 before +0.
template <class P>
P least(P a, P b) {
  if constexpr (!std::is_integral_v<P>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return b < a ? b : a;
}

template <class P>
P greatest(P a, P b) {
  if constexpr (!std::is_integral_v<P>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}

// One step of a fold. Integers wrap.
template <class P>
P combined(const Op& op, P a, P b) {
  if (op.reduce_op() == ReduceOp::min) return least(a, b);
  if (op.reduce_op() == ReduceOp::max) return greatest(a, b);
  if constexpr (std::is_integral_v<P>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    if (op.reduce_op() == ReduceOp::band) return static_cast<P>(x & y);
    if (op.reduce_op() == ReduceOp::bor) return static_cast<P>(x | y);
    if (op.reduce_op() == ReduceOp::bxor) return static_cast<P>(x ^ y);
    return static_cast<P>(op.reduce_op() == ReduceOp::product ? x * y : x + y);
  } else {
    return op.reduce_op() == ReduceOp::product ? a * b : a + b;
  }
}

// A rank's contribution.
template <class T>
Partial<T> contribution(const Op& op, T element) {
  const auto value = static_cast<Partial<T>>(element);
  if (op.kind() != Op::Kind::premul_sum) return value;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(value) *
                          static_cast<std::uint64_t>(static_cast<std::int64_t>(op.scale())));
  else
    return value * static_cast<Partial<T>>(op.scale());
}

// The partial result as the caller gets it: the integer division rounds toward zero, 16-bit floats are rounded here.
template <class T>
T finished(const Op& op, Partial<T> partial, int size) {
  const bool averages = op.kind() == Op::Kind::builtin && op.reduce_op() == ReduceOp::avg;
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return averages ? static_cast<T>(static_cast<Wide>(partial) / static_cast<Wide>(size)) : partial;
  } else {
    return static_cast<T>(averages ? partial / static_cast<Partial<T>>(size) : partial);
  }
}

// Element i of a reduction over the ranks [0, ranks) of a group of inputs.size(), folded from left to right. `per_hop`:
// every partial result is rounded to T, which is what our reductions must not do unless asked.
template <class T>
T left_fold(const Reduction& call, const PerRank<T>& inputs, std::size_t i, int ranks, bool per_hop = false) {
  const auto hop = [per_hop](Partial<T> value) { return per_hop ? static_cast<Partial<T>>(T(value)) : value; };
  Partial<T> partial = hop(contribution(call.op(0), inputs[0][i]));
  for (int r = 1; r < ranks; ++r)
    partial = hop(combined(call.op(0), partial, hop(contribution(call.op(r), inputs[static_cast<std::size_t>(r)][i]))));
  return finished<T>(call.op(0), partial, static_cast<int>(inputs.size()));
}

template <class T>
struct Range {
  T low, high;
};

// What any order of the same operations in Partial<T>, rounded to T once, can give for a sum, product, average or
// scaled sum.
//
// Each operation errs by a factor of at most 1 + u, u = 2^-24 for float (2^-53 for double). A term of a sum passes at
// most `ranks` - 1 additions, one scaling and one division, so that the sum is off by at most (ranks + 1) u times the
// sum of the magnitudes, and a bit more for the higher powers of u; a product is off by that factor itself. (Ranges of
// inputs are such that nothing underflows.) Rounding to T is monotonic: between the roundings of both ends, of which
// there are rarely more than two, every value is allowed and no other.
template <class T>
Range<T> any_fold(const Reduction& call, const PerRank<T>& inputs, std::size_t i, int ranks) {
  using P = Partial<T>;
  using Exact = long double;
  const bool multiplies = call.op(0).kind() == Op::Kind::builtin && call.op(0).reduce_op() == ReduceOp::product;
  const bool averages = call.op(0).kind() == Op::Kind::builtin && call.op(0).reduce_op() == ReduceOp::avg;
  Exact value = multiplies ? 1 : 0, magnitude = 0;
  for (int r = 0; r < ranks; ++r) {
    Exact x = static_cast<P>(inputs[static_cast<std::size_t>(r)][i]);
    if (call.op(r).kind() == Op::Kind::premul_sum) x *= static_cast<P>(call.op(r).scale());
    value = multiplies ? value * x : value + x;
    magnitude += std::fabs(x);
  }
  if (multiplies) magnitude = std::fabs(value);
  const auto divisor = static_cast<Exact>(averages ? inputs.size() : 1);
  const Exact u = static_cast<Exact>(std::numeric_limits<P>::epsilon()) / 2;
  const Exact error = static_cast<Exact>(ranks + 2) * u * magnitude / divisor;
  constexpr P kInfinity = std::numeric_limits<P>::infinity();
  // One more step outward: the ends are rounded to P before they are rounded to T.
  return {static_cast<T>(std::nextafter(static_cast<P>(value / divisor - error), -kInfinity)),
          static_cast<T>(std::nextafter(static_cast<P>(value / divisor + error), kInfinity))};
}

// ---- Judging outputs: the first thing that is wrong, in words, or nothing -------------------------------------------

// `judge`(element, ranks, got) says what is wrong with one element.
template <class T, class Judge>
std::string first_problem(const Reduction& call, const PerRank<T>& inputs, const PerRank<T>& outputs, Judge judge) {
  const int size = static_cast<int>(inputs.size());
  for (int rank = 0; rank < size; ++rank) {
    const Covered mine = covered(call, rank, size, inputs[0].size());
    for (std::size_t i = 0; i < mine.count; ++i) {
      const std::string problem = judge(mine.begin + i, mine.ranks, outputs[static_cast<std::size_t>(rank)][i]);
      if (!problem.empty())
        return fmt::format("{}, {} ranks, {}: element {} on rank {}: {}", call.text(), size, to_string(dtype_of<T>()),
                           mine.begin + i, rank, problem);
    }
  }
  return {};
}

// Whether an allreduce gave all ranks the same bits, those of a NaN included.
template <class T>
std::string differs_between_ranks(const Reduction& call, const PerRank<T>& outputs) {
  if (call.collective != Collective::allreduce) return {};
  for (std::size_t r = 1; r < outputs.size(); ++r) {
    for (std::size_t i = 0; i < outputs[0].size(); ++i) {
      if (bits_of(outputs[r][i]) != bits_of(outputs[0][i]))
        return fmt::format("{}: element {} is {} on rank 0, {} on rank {}", call.text(), i, show(outputs[0][i]),
                           show(outputs[r][i]), r);
    }
  }
  return {};
}

// Whether all outputs are the fold in rank order, to the bit; a NaN is any NaN.
template <class T>
std::string differs_from_left_fold(const Reduction& call, const PerRank<T>& inputs, const PerRank<T>& outputs) {
  return first_problem(call, inputs, outputs, [&](std::size_t i, int ranks, T got) -> std::string {
    const T want = left_fold(call, inputs, i, ranks);
    if (is_nan(want) ? is_nan(got) : bits_of(want) == bits_of(got)) return {};
    return fmt::format("{}, not {}", show(got), show(want));
  });
}

// Whether all outputs are what the call's algorithm may give: the fold in rank order, or any_fold().
template <class T>
std::string differs_from_promise(const Reduction& call, const PerRank<T>& inputs, const PerRank<T>& outputs) {
  if (call.order == FoldOrder::rank_order) return differs_from_left_fold(call, inputs, outputs);
  return first_problem(call, inputs, outputs, [&](std::size_t i, int ranks, T got) -> std::string {
    const Range<T> range = any_fold(call, inputs, i, ranks);
    const auto value = static_cast<Partial<T>>(got);
    if (static_cast<Partial<T>>(range.low) <= value && value <= static_cast<Partial<T>>(range.high)) return {};
    return fmt::format("{}, not between {} and {}", show(got), show(range.low), show(range.high));
  });
}

}  // namespace col::test
