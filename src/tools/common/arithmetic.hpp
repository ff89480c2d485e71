// The right results of all calls: elements go where reference.hpp says, and a reduction folds them in rank order, as
// <col/group.hpp> promises it. Tools and tests have no other arithmetic. It is written for clarity, and uses nothing of
// the library except its conversions of narrow floats. colcheck/selftest/definition.hpp checks it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "common/element.hpp"
#include "common/reference.hpp"

namespace col::tools {

// The smaller or the greater value. A NaN counts as smaller and as greater than any number, and -0 as smaller than +0.
template <class P>
P extreme(bool greatest, P a, P b) {
  if constexpr (std::is_floating_point_v<P>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == b) return std::signbit(a) != greatest ? a : b;
  }
  return (b < a) != greatest ? b : a;
}

// Complex numbers as the textbook multiplies them.
template <class P>
P product_of(P a, P b) {
  if constexpr (is_complex_v<P>)
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else
    return a * b;
}

// The steps of a reduction of elements of type T. Who plants a mistake derives from it, and hides one of them.
struct Steps {
  // Gives the contribution of a rank.
  template <class T>
  Partial<T> contribution(const Op& op, T element) const {
    const auto value = static_cast<Partial<T>>(element);
    if (op.kind() != Op::Kind::premul_sum) return value;
    if constexpr (std::is_integral_v<T>) {
      const auto magnitude = static_cast<std::uint64_t>(std::fmod(std::fabs(op.scale()), 0x1p64));
      return static_cast<T>(static_cast<std::uint64_t>(value) * (op.scale() < 0 ? 0 - magnitude : magnitude));
    } else if constexpr (is_complex_v<T>) {
      return value * static_cast<typename RealOf<T>::Type>(op.scale());
    } else {
      // Volatile: otherwise a compiler may fuse it with the following addition, and not round it.
      const volatile Partial<T> scaled = value * static_cast<Partial<T>>(op.scale());
      return scaled;
    }
  }

  // Integers wrap. A user's function works on the type itself.
  template <class T>
  Partial<T> combined(const Op& op, Partial<T> a, Partial<T> b) const {
    using P = Partial<T>;
    if (op.kind() == Op::Kind::user) {
      const T left(a), right(b);
      T result{};
      op.user_function()(&left, &right, &result, 1, dtype_of<T>());
      return static_cast<P>(result);
    }
    const ReduceOp kind = op.reduce_op();
    if constexpr (!is_complex_v<T>) {
      if (kind == ReduceOp::min || kind == ReduceOp::max) return extreme(kind == ReduceOp::max, a, b);
    }
    if constexpr (std::is_integral_v<T>) {
      const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
      if (kind == ReduceOp::band) return static_cast<T>(x & y);
      if (kind == ReduceOp::bor) return static_cast<T>(x | y);
      if (kind == ReduceOp::bxor) return static_cast<T>(x ^ y);
      return static_cast<T>(kind == ReduceOp::product ? x * y : x + y);
    } else {
      return kind == ReduceOp::product ? product_of(a, b) : a + b;
    }
  }

  // The fold over all in the form for the caller, but for the last rounding. Integers are divided toward zero.
  template <class T>
  Partial<T> averaged(const Op& op, Partial<T> total, int ranks) const {
    if (op.kind() != Op::Kind::builtin || op.reduce_op() != ReduceOp::avg) return total;
    if constexpr (std::is_integral_v<T>) {
      using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      return static_cast<T>(static_cast<Wide>(total) / static_cast<Wide>(ranks));
    } else {
      return total / static_cast<typename RealOf<Partial<T>>::Type>(ranks);
    }
  }
};

// The operator of a rank, of a list by rank or of one for all.
inline const Op& op_of(const std::vector<Op>& ops, int rank) {
  return ops.size() == 1 ? ops.front() : ops[static_cast<std::size_t>(rank)];
}

// Gives what the ranks [first, last) of a group of `size` give together; `input(rank)` is the element of a rank. Narrow
// floats are not rounded yet.
template <class T, class Input, class S = Steps>
Partial<T> partial_fold(const std::vector<Op>& ops, int size, int first, int last, Input input, const S& steps = {}) {
  Partial<T> total = steps.contribution(op_of(ops, first), static_cast<T>(input(first)));
  for (int rank = first + 1; rank < last; ++rank)
    total = steps.template combined<T>(op_of(ops, first), total,
                                       steps.contribution(op_of(ops, rank), static_cast<T>(input(rank))));
  return steps.template averaged<T>(op_of(ops, first), total, size);
}

// Element `i` of a segment of an output. `input(rank, block, i)` is element i of a block that a rank brings.
template <class T, class Input>
T element_at(const ReferenceCall& call, const Segment& from, std::size_t i, Input input) {
  const auto of_rank = [&](int rank) { return input(rank, from.block, i); };
  if (!reduces(call.collective)) return static_cast<T>(of_rank(from.first));
  return static_cast<T>(partial_fold<T>(call.ops, call.size, from.first, from.last, of_rank));
}

// The same where `value(rank, i)` is element i of all that a rank brings, and `give(element)` takes each element of the
// output.
template <class T, class Value, class Give>
void each_element(const ReferenceCall& call, const std::vector<Segment>& output, Value value, Give give) {
  for (const Segment& from : output) {
    const std::size_t begin = begin_of(call, from);
    const auto input = [&](int rank, int /*block*/, std::size_t i) { return value(rank, begin + i); };
    for (std::size_t i = 0; i < from.count; ++i) give(element_at<T>(call, from, i, input));
  }
}

// All that a rank gets.
template <class T, class Value>
std::vector<T> right_output(const ReferenceCall& call, int rank, Value value) {
  std::vector<T> output;
  each_element<T>(call, output_segments(call, rank), value, [&](T element) { output.push_back(element); });
  return output;
}

}  // namespace col::tools
