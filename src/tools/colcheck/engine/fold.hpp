// The results that reductions must give: the fold in rank order as <col/group.hpp> promises it, and the possible
// results of another order. It is written for clarity. It uses nothing of the library except its conversions of narrow
// floats.
#pragma once

#include <cmath>
#include <limits>

#include "colcheck/engine/element.hpp"
#include "colcheck/engine/reduction.hpp"

namespace col::colcheck {

// The type of partial results, and the elements in it.
template <class T>
using Partial = std::conditional_t<is_narrow_v<T>, float, T>;

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<Partial<T>>(value));
}

// ---- In rank order --------------------------------------------------------------------------------------------------

// The smaller value. A NaN counts as smaller than any number, and -0 as smaller than +0.
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
  if constexpr (!is_complex_v<P>) {
    if (op.reduce_op() == ReduceOp::min) return least(a, b);
    if (op.reduce_op() == ReduceOp::max) return greatest(a, b);
  }
  if constexpr (std::is_integral_v<P>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    if (op.reduce_op() == ReduceOp::band) return static_cast<P>(x & y);
    if (op.reduce_op() == ReduceOp::bor) return static_cast<P>(x | y);
    if (op.reduce_op() == ReduceOp::bxor) return static_cast<P>(x ^ y);
    return static_cast<P>(op.reduce_op() == ReduceOp::product ? x * y : x + y);
  } else {
    return op.reduce_op() == ReduceOp::product ? product_of(a, b) : a + b;
  }
}

// A rank's contribution.
template <class T>
Partial<T> contribution(const Op& op, T element) {
  const auto value = static_cast<Partial<T>>(element);
  if (op.kind() != Op::Kind::premul_sum) return value;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(value) *
                          static_cast<std::uint64_t>(static_cast<std::int64_t>(op.scale())));
  } else if constexpr (is_complex_v<T>) {
    return value * static_cast<typename RealOf<T>::Type>(op.scale());
  } else {
    // Volatile: otherwise a compiler may fuse it with the following addition, and not round it.
    const volatile Partial<T> scaled = value * static_cast<Partial<T>>(op.scale());
    return scaled;
  }
}

// The partial result in the form for the caller: the integer division rounds toward zero, and narrow floats are rounded
// here.
template <class T>
T finished(const Op& op, Partial<T> partial, int size) {
  const bool averages = op.kind() == Op::Kind::builtin && op.reduce_op() == ReduceOp::avg;
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return averages ? static_cast<T>(static_cast<Wide>(partial) / static_cast<Wide>(size)) : partial;
  } else {
    return static_cast<T>(averages ? partial / static_cast<typename RealOf<Partial<T>>::Type>(size) : partial);
  }
}

// Element i of a reduction over the ranks [0, ranks) of a group of inputs.size() ranks, folded from left to right.
// `per_hop`: every partial result is rounded to T, which our reductions must not do unless asked.
template <class T>
T left_fold(const Reduction& call, const PerRank<T>& inputs, std::size_t i, int ranks, bool per_hop = false) {
  const auto hop = [per_hop](Partial<T> value) { return per_hop ? static_cast<Partial<T>>(T(value)) : value; };
  Partial<T> partial = hop(contribution(call.op(0), inputs[0][i]));
  for (int r = 1; r < ranks; ++r)
    partial = hop(combined(call.op(0), partial, hop(contribution(call.op(r), inputs[static_cast<std::size_t>(r)][i]))));
  return finished<T>(call.op(0), partial, static_cast<int>(inputs.size()));
}

// ---- In any order ---------------------------------------------------------------------------------------------------

template <class T>
struct Range {
  T low, high;
};

// A sum, product, average or scaled sum that is nearly exact, and the sum of the magnitudes of its terms (for a
// product: the magnitude of the result).
struct ExactFold {
  long double value = 0, magnitude = 0;
};

template <class T>
ExactFold exact_fold(const Reduction& call, const PerRank<T>& inputs, std::size_t i, int ranks) {
  using P = Partial<T>;
  const bool multiplies = call.op(0).kind() == Op::Kind::builtin && call.op(0).reduce_op() == ReduceOp::product;
  const bool averages = call.op(0).kind() == Op::Kind::builtin && call.op(0).reduce_op() == ReduceOp::avg;
  ExactFold fold{.value = multiplies ? 1.0L : 0.0L, .magnitude = 0};
  for (int r = 0; r < ranks; ++r) {
    long double x = static_cast<P>(inputs[static_cast<std::size_t>(r)][i]);
    if (call.op(r).kind() == Op::Kind::premul_sum) x *= static_cast<P>(call.op(r).scale());
    fold.value = multiplies ? fold.value * x : fold.value + x;
    fold.magnitude += std::fabs(x);
  }
  if (multiplies) fold.magnitude = std::fabs(fold.value);
  const auto divisor = static_cast<long double>(averages ? inputs.size() : 1);
  return {fold.value / divisor, fold.magnitude / divisor};
}

// The possible roundings of `value` ± `error` to T. Rounding is monotonic: every value between the roundings of the two
// ends is allowed, and no other. There are rarely more than two.
template <class T>
Range<T> rounded_once(long double value, long double error) {
  using P = Partial<T>;
  constexpr P kInfinity = std::numeric_limits<P>::infinity();
  // One more step outward, because the ends are rounded to P before they are rounded to T.
  return {static_cast<T>(std::nextafter(static_cast<P>(value - error), -kInfinity)),
          static_cast<T>(std::nextafter(static_cast<P>(value + error), kInfinity))};
}

// The possible results of the same operations in Partial<T> in any order, rounded to T once.
//
// Each operation has an error of at most a factor 1 + u, where u = 2^-24 for float (2^-53 for double). A term of a sum
// passes at most `ranks` - 1 additions, one scaling and one division. So the error of the sum is at most (ranks + 1) u
// times the sum of the magnitudes, and a bit more for the higher powers of u. The error of a product is that factor
// itself. (The inputs must be such that nothing underflows.)
template <class T>
Range<T> any_fold(const Reduction& call, const PerRank<T>& inputs, std::size_t i, int ranks) {
  const ExactFold fold = exact_fold(call, inputs, i, ranks);
  const auto unit = static_cast<long double>(std::numeric_limits<Partial<T>>::epsilon()) / 2;
  return rounded_once<T>(fold.value, static_cast<long double>(ranks + 2) * unit * fold.magnitude);
}

// The number of significant bits of T, with the leading one.
template <class T>
constexpr int kPrecision = std::is_same_v<T, float16>         ? 11
                           : std::is_same_v<T, bfloat16>      ? 8
                           : std::is_same_v<T, float8_e4m3fn> ? 4
                           : std::is_same_v<T, float8_e5m2>   ? 3
                                                              : std::numeric_limits<Partial<T>>::digits;

// The same if every partial result is rounded to T on its way. Then u is 2^-11 for float16, 2^-8 for bfloat16, 2^-4
// and 2^-3 for those of 8 bits. This is not so small that its powers can be left out, and the last rounding counts as
// one more. (A result that is subnormal in T may have a larger error.)
template <class T>
Range<T> compressed_fold(const Reduction& call, const PerRank<T>& inputs, std::size_t i, int ranks) {
  const ExactFold fold = exact_fold(call, inputs, i, ranks);
  const long double factor = std::pow(1 + std::ldexp(1.0L, -kPrecision<T>), ranks + 3) - 1;
  return rounded_once<T>(fold.value, factor * fold.magnitude);
}

}  // namespace col::colcheck
