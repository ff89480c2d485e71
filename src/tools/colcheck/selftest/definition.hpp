// Says what collectives and operators give, straight from their definitions, as plainly as it can be said and whatever
// time it takes. It is the check of common/reference.hpp and common/arithmetic.hpp (agreement.hpp), and shares nothing
// with them.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <type_traits>
#include <vector>

#include <col/types.hpp>

namespace col::colcheck::definition {

// ---- Collectives: what every rank gets

using Numbers = std::vector<std::int64_t>;
using World = std::vector<Numbers>;  // of each rank

struct Question {
  World in;  // what every rank brings
  std::size_t root;
  std::vector<std::vector<std::size_t>>
      counts;  // elements of the blocks, by the rank that has them and the one they are for
  std::function<std::int64_t(const Numbers&)> fold;  // contributions in rank order
};

// Picks the block for a rank from a list.
inline Numbers block(const Numbers& blocks, const std::vector<std::size_t>& counts, std::size_t rank) {
  auto begin = blocks.begin();
  for (std::size_t before = 0; before < rank; ++before) begin += static_cast<std::ptrdiff_t>(counts[before]);
  return {begin, begin + static_cast<std::ptrdiff_t>(counts[rank])};
}

// Over the ranks before `end`.
inline Numbers reduced(const Question& q, std::size_t end) {
  Numbers result;
  for (std::size_t i = 0; i < q.in[0].size(); ++i) {
    Numbers column;
    for (std::size_t rank = 0; rank < end; ++rank) column.push_back(q.in[rank][i]);
    result.push_back(q.fold(column));
  }
  return result;
}

inline World allreduce(const Question& q) {
  return World(q.in.size(), reduced(q, q.in.size()));
}

inline World reduce(const Question& q) {
  World out(q.in.size());
  out[q.root] = reduced(q, q.in.size());
  return out;
}

inline World scan(const Question& q) {
  World out(q.in.size());
  for (std::size_t rank = 0; rank < q.in.size(); ++rank) out[rank] = reduced(q, rank + 1);
  return out;
}

inline World exscan(const Question& q) {
  World out(q.in.size());
  for (std::size_t rank = 1; rank < q.in.size(); ++rank) out[rank] = reduced(q, rank);
  return out;
}

inline World reduce_scatter(const Question& q) {
  World out(q.in.size());
  for (std::size_t rank = 0; rank < q.in.size(); ++rank) out[rank] = block(reduced(q, q.in.size()), q.counts[0], rank);
  return out;
}

inline World broadcast(const Question& q) {
  return World(q.in.size(), q.in[q.root]);
}

inline World gather(const Question& q) {
  World out(q.in.size());
  for (const Numbers& own : q.in) out[q.root].insert(out[q.root].end(), own.begin(), own.end());
  return out;
}

inline World allgather(const Question& q) {
  return World(q.in.size(), gather(q)[q.root]);
}

inline World scatter(const Question& q) {
  World out(q.in.size());
  for (std::size_t rank = 0; rank < q.in.size(); ++rank) out[rank] = block(q.in[q.root], q.counts[q.root], rank);
  return out;
}

inline World alltoall(const Question& q) {
  World out(q.in.size());
  for (std::size_t to = 0; to < q.in.size(); ++to) {
    for (std::size_t from = 0; from < q.in.size(); ++from) {
      const Numbers letter = block(q.in[from], q.counts[from], to);
      out[to].insert(out[to].end(), letter.begin(), letter.end());
    }
  }
  return out;
}

// In the order of Collective; a v-form only has other counts.
inline constexpr World (*kByCollective[])(const Question&) = {
    allreduce, reduce,  broadcast, allgather, allgather, reduce_scatter, reduce_scatter, gather,
    gather,    scatter, scatter,   alltoall,  alltoall,  scan,           exscan};

// ---- Operators on integers, booleans among them: the exact result, of which the type keeps the low bits

// Not in ISO C++, which __extension__ admits. Its arithmetic is modulo 2^128, of which 2^64 is a divisor.
__extension__ using Exact = unsigned __int128;

// Averages are the wrapped sum divided by `ranks`, toward zero.
template <class T>
T folded(ReduceOp op, const std::vector<T>& x, int ranks) {
  if (op == ReduceOp::min) return *std::min_element(x.begin(), x.end());
  if (op == ReduceOp::max) return *std::max_element(x.begin(), x.end());
  auto result = static_cast<Exact>(x[0]);
  for (std::size_t i = 1; i < x.size(); ++i) {
    const auto next = static_cast<Exact>(x[i]);
    if (op == ReduceOp::sum || op == ReduceOp::avg) result += next;
    if (op == ReduceOp::product) result *= next;
    if (op == ReduceOp::band) result &= next;
    if (op == ReduceOp::bor) result |= next;
    if (op == ReduceOp::bxor) result ^= next;
  }
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const auto wrapped = static_cast<T>(result);
  return op == ReduceOp::avg ? static_cast<T>(static_cast<Wide>(wrapped) / static_cast<Wide>(ranks)) : wrapped;
}

// ---- Operators on floats: one after the other, in float32 or float64

// -0 is before +0. Any NaN makes the result NaN.
template <std::floating_point P>
P folded(ReduceOp op, const std::vector<P>& x, int ranks) {
  const bool orders = op == ReduceOp::min || op == ReduceOp::max;
  const auto is_before = [](P a, P b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); };
  P result = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (op == ReduceOp::product) result *= x[i];
    if (op == ReduceOp::sum || op == ReduceOp::avg) result += x[i];
    const bool better = op == ReduceOp::min ? is_before(x[i], result) : is_before(result, x[i]);
    if (orders && !std::isnan(result) && (better || std::isnan(x[i]))) result = x[i];
  }
  return op == ReduceOp::avg ? result / static_cast<P>(ranks) : result;
}

template <class R>
std::complex<R> folded(ReduceOp op, const std::vector<std::complex<R>>& x, int ranks) {
  R real = x[0].real(), imaginary = x[0].imag();
  for (std::size_t i = 1; i < x.size(); ++i) {
    const R c = x[i].real(), d = x[i].imag(), a = real, b = imaginary;
    real = op == ReduceOp::product ? a * c - b * d : a + c;
    imaginary = op == ReduceOp::product ? a * d + b * c : b + d;
  }
  const R divisor = op == ReduceOp::avg ? static_cast<R>(ranks) : R{1};
  return {real / divisor, imaginary / divisor};
}

// ---- Narrow floats: a sign, an exponent, and a fraction

struct Layout {
  int exponent, fraction;  // bits
  int infinity;            // the bits of infinity, or of NaN where there is none

  int sign() const { return 1 << (exponent + fraction); }
  // The magnitude that these bits stand for, as if there were no infinity.
  double number(int bits) const {
    const int bias = (1 << (exponent - 1)) - 1, e = bits >> fraction, one = 1 << fraction, f = bits & (one - 1);
    return e == 0 ? std::ldexp(f, 1 - bias - fraction) : std::ldexp(one + f, e - bias - fraction);
  }
  // The bits of the number that is nearest to a magnitude; of two, the even ones. Greater bits are greater numbers.
  int nearest(double magnitude) const {
    int bits = 0;
    for (int step = 1 << (exponent + fraction - 1); step > 0; step /= 2)
      if (bits + step <= infinity && number(bits + step) <= magnitude) bits += step;
    const double down = magnitude - number(bits), up = number(bits + 1) - magnitude;
    return bits < infinity && (down > up || (down == up && bits % 2 == 1)) ? bits + 1 : bits;
  }
};

constexpr Layout layout_of(float16) {
  return {5, 10, 0x7c00};
}
constexpr Layout layout_of(bfloat16) {
  return {8, 7, 0x7f80};
}
constexpr Layout layout_of(float8_e4m3fn) {
  return {4, 3, 0x7f};
}
constexpr Layout layout_of(float8_e5m2) {
  return {5, 2, 0x7c};
}

// A float32 as a narrow float.
template <class T>
T narrowed(float value) {
  const Layout layout = layout_of(T{});
  const int bits = std::isnan(value) ? layout.sign() - 1 : layout.nearest(std::fabs(static_cast<double>(value)));
  return T::from_bits(static_cast<decltype(T::bits)>(bits + (std::signbit(value) ? layout.sign() : 0)));
}

}  // namespace col::colcheck::definition
