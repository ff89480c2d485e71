// The results that reductions must give: the fold in rank order, and the possible results of another order.
#pragma once

#include <cmath>
#include <limits>

#include "colcheck/engine/reduction.hpp"

namespace col::colcheck {

// ---- In rank order --------------------------------------------------------------------------------------------------

// Every partial result is rounded to T, which our reductions must not do unless asked.
struct EveryHopRounds : tools::Steps {
  template <class T>
  Partial<T> contribution(const Op& op, T element) const {
    return static_cast<Partial<T>>(static_cast<T>(Steps::contribution(op, element)));
  }
  template <class T>
  Partial<T> combined(const Op& op, Partial<T> a, Partial<T> b) const {
    return static_cast<Partial<T>>(static_cast<T>(Steps::combined<T>(op, a, b)));
  }
};

// Element i of a reduction over the ranks [0, ranks) of a group of inputs.size() ranks, folded from left to right.
template <class T, class S = tools::Steps>
T left_fold(const Reduction& call, const PerRank<T>& inputs, std::size_t i, int ranks, const S& steps = {}) {
  const auto input = [&](int rank) { return inputs[static_cast<std::size_t>(rank)][i]; };
  const int size = static_cast<int>(inputs.size());
  return static_cast<T>(tools::partial_fold<T>(call.ops, size, 0, ranks, input, steps));
}

// ---- In the tree's order -------------------------------------------------------------------------------------------

// Element i of the tree over all contributions, of which each has an operator: neighbours are combined level by level,
// and an odd last one goes up as it is.
template <class T, class S = tools::Steps>
T tree_fold(const std::vector<Op>& ops, const PerRank<T>& contributions, std::size_t i, const S& steps = {}) {
  std::vector<Partial<T>> level;
  for (std::size_t v = 0; v < contributions.size(); ++v)
    level.push_back(steps.contribution(ops[v], contributions[v][i]));
  while (level.size() > 1) {
    std::size_t above = 0;
    for (std::size_t v = 0; v < level.size(); v += 2)
      level[above++] =
          v + 1 < level.size() ? steps.template combined<T>(ops.front(), level[v], level[v + 1]) : level[v];
    level.resize(above);
  }
  return static_cast<T>(steps.template averaged<T>(ops.front(), level.front(), static_cast<int>(contributions.size())));
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
