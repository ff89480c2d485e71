// Calls in the tree's order that are drawn, and what must come of them. The oracle is the definition, level by level,
// and has nothing in common with the library's fold.
#pragma once

#include <array>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {

template <class T>
constexpr bool kIsNarrow = std::is_class_v<T>;
// The type in which another one is added.
template <class T>
using Sum = std::conditional_t<kIsNarrow<T>, float, T>;

// The definition: neighbours are combined level by level, and an odd last one goes up as it is.
template <class Value, class Combine>
Value oracle(std::vector<Value> level, Combine combine) {
  while (level.size() > 1) {
    std::size_t above = 0;
    for (std::size_t i = 0; i < level.size(); i += 2)
      level[above++] = i + 1 < level.size() ? combine(level[i], level[i + 1]) : level[i];
    level.resize(above);
  }
  return level.front();
}

inline std::uint64_t mixed(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + a * 0xbf58476d1ce4e5b9u + b * 0x94d049bb133111ebu;
  for (int i = 0; i < 3; ++i) x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

// Element `i` of contribution `v`: of different sizes and signs, so that another order has other bits.
template <class T>
T element(std::uint64_t seed, std::size_t v, std::size_t i, int shift = 0) {
  const std::uint64_t drawn = mixed(seed, v, i);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(drawn);
  } else {
    const auto fraction = 1 + static_cast<Sum<T>>(drawn % 1021) / 1021;
    const int exponent = static_cast<int>((drawn >> 12) % (sizeof(T) == 1 ? 4 : 10)) - 2 + shift;
    return static_cast<T>(static_cast<Sum<T>>(std::ldexp(fraction, exponent)) * ((drawn >> 30) % 2 != 0 ? -1 : 1));
  }
}

// Neither commutative nor associative: the order, and which operand is the left one, are in the result.
inline float skew(float left, float right) {
  return 1.5f * left + right / 3;
}
inline Op skewed() {
  return Op::user(
      [](const void* left, const void* right, void* result, std::size_t count, DType /*dtype*/) {
        for (std::size_t i = 0; i < count; ++i)
          static_cast<float*>(result)[i] =
              skew(static_cast<const float*>(left)[i], static_cast<const float*>(right)[i]);
      },
      false, "skew");
}

enum class Operation { sum, product, avg, user };

struct Draw {
  std::uint64_t seed = 0;
  std::size_t count = 1;
  std::vector<std::size_t> shares = {};
  std::size_t named = 0;  // Options::contributions
  Operation operation = Operation::sum;
  std::string algorithm = {};
  enum class Form { blocking, started, prepared } form = Form::blocking;
  Collective collective = Collective::allreduce;
  int root = 0;
  std::vector<std::size_t> counts = {};  // of a reduce_scatterv
  int shift = 0;                         // all numbers times 2^shift: denormals
  bool is_unusual = false;               // every other rank computes with floats in its own way
  // Elements of a contribution.
  std::size_t length() const {
    if (collective == Collective::reduce_scatter) return count * shares.size();
    return counts.empty() ? count : std::reduce(counts.begin(), counts.end());
  }
  // The elements of it that a rank gets.
  std::pair<std::size_t, std::size_t> part_of(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    if (collective == Collective::reduce) return {0, rank == root ? count : 0};
    if (collective == Collective::reduce_scatter) return {r * count, count};
    if (counts.empty()) return {0, count};
    const auto own = counts.begin() + rank;
    return {std::reduce(counts.begin(), own), *own};
  }
  std::string text() const {
    return fmt::format(
        "{} of {} elements (counts {}), seed {}, root {}, shares {}, named {}, operation {}, '{}', form {}",
        to_string(collective), count, counts, seed, root, shares, named, static_cast<int>(operation), algorithm,
        static_cast<int>(form));
  }
};

template <class T>
std::vector<T> expected(const Draw& draw, std::size_t begin, std::size_t count) {
  std::size_t total = 0;
  for (const std::size_t share : draw.shares) total += share;
  std::vector<T> result;
  for (std::size_t i = begin; i < begin + count; ++i) {
    std::vector<Sum<T>> level;
    for (std::size_t v = 0; v < total; ++v)
      level.push_back(static_cast<Sum<T>>(element<T>(draw.seed, v, i, draw.shift)));
    auto value = oracle(level, [&](Sum<T> a, Sum<T> b) -> Sum<T> {
      if constexpr (std::is_integral_v<T>) {  // they wrap
        const auto x = static_cast<std::make_unsigned_t<T>>(a), y = static_cast<std::make_unsigned_t<T>>(b);
        return static_cast<T>(draw.operation == Operation::product ? x * y : x + y);
      }
      if (draw.operation == Operation::product) return a * b;
      if constexpr (std::is_same_v<T, float>) {
        if (draw.operation == Operation::user) return skew(a, b);
      }
      return a + b;
    });
    if (draw.operation == Operation::avg) value = value / static_cast<Sum<T>>(total);
    result.push_back(static_cast<T>(value));
  }
  return result;
}

inline Op op_of(Operation operation) {
  switch (operation) {
    case Operation::sum:
      return ReduceOp::sum;
    case Operation::product:
      return ReduceOp::product;
    case Operation::avg:
      return ReduceOp::avg;
    case Operation::user:
      return skewed();
  }
  return ReduceOp::sum;
}

// This thread rounds up, and takes denormals for zero, until end(), which sees that nobody has changed that.
class UnusualFloats {
 public:
  explicit UnusualFloats(bool applies) : applies_(applies) {
    if (!applies_) return;
    std::fegetenv(&before_);
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | kFlushes);
#endif
  }
  void end() const {
    if (!applies_) return;
    bool is_kept = std::fegetround() == FE_UPWARD;
#if defined(__x86_64__)
    const volatile float denormal = 0x1p-140f;
    is_kept = is_kept && denormal * 4 == 0 && (_mm_getcsr() & kFlushes) == kFlushes;
#endif
    std::fesetenv(&before_);
    expect(is_kept, "the call has changed how its thread rounds, or flushes");
  }

 private:
  static constexpr unsigned kFlushes = 0x8040;  // results and operands
  bool applies_;
  std::fenv_t before_ = {};
};

template <class T>
void try_one(Group& group, const Draw& draw) {
  const auto own = static_cast<std::size_t>(group.rank());
  std::size_t first = 0;
  for (std::size_t r = 0; r < own; ++r) first += draw.shares[r];
  std::vector<T> in;
  for (std::size_t v = 0; v < draw.shares[own]; ++v) {
    for (std::size_t i = 0; i < draw.length(); ++i) in.push_back(element<T>(draw.seed, first + v, i, draw.shift));
  }
  const auto [begin, count] = draw.part_of(group.rank());
  const bool in_place = draw.shares[own] == 1 && draw.seed % 2 == 0;
  std::vector<T> apart(count);
  const TensorView out = in_place ? TensorView(in).slice(begin, count) : TensorView(apart);
  const Options options{.op = op_of(draw.operation),
                        .root = draw.root,
                        .algorithm = draw.algorithm,
                        .order = Order::tree,
                        .contributions = draw.named};
  const Call call{.collective = draw.collective, .in = in, .out = out, .in_counts = draw.counts};
  const UnusualFloats unusual(draw.is_unusual && own % 2 == 1);
  if (draw.form == Draw::Form::blocking) {
    group.run(call, options);
  } else if (draw.form == Draw::Form::started || draw.operation == Operation::user) {
    group.start(call, options).wait();
  } else {
    PreparedCall prepared = group.prepare(call, options);
    prepared.start();
    prepared.wait();
  }
  unusual.end();
  const std::vector<T> right = expected<T>(draw, begin, count);
  expect(count == 0 || std::memcmp(out.data, right.data(), count * sizeof(T)) == 0,
         fmt::format("other bits: {} of {}", draw.text(), to_string(dtype_of<T>())));
}

inline void try_type(Group& group, int type, const Draw& draw) {
  switch (type % 7) {
    case 0:
      return try_one<float>(group, draw);
    case 1:
      return try_one<double>(group, draw);
    case 2:
      return try_one<std::int32_t>(group, draw);
    case 3:
      return try_one<std::uint64_t>(group, draw);
    case 4:
      return try_one<float16>(group, draw);
    case 5:
      return try_one<bfloat16>(group, draw);
    default:
      return try_one<float8_e5m2>(group, draw);
  }
}

// Shares that add up to `total`, with zeros.
inline std::vector<std::size_t> shares_of(int ranks, std::size_t total, std::uint64_t seed) {
  std::vector<std::size_t> shares(static_cast<std::size_t>(ranks), 0);
  for (std::size_t v = 0; v < total; ++v) {
    const std::uint64_t drawn = mixed(seed, v, 1);
    ++shares[(drawn % 3 == 0 ? seed : drawn) / 3 % shares.size()];
  }
  return shares;
}

// Every rank draws the same.
inline Draw drawn(int ranks, std::uint64_t seed, int type) {
  Draw draw{.seed = seed};
  const std::size_t total = 1 + mixed(seed, 2, 0) % 40;
  constexpr std::array<std::size_t, 5> kCounts = {1, 2, 7, 300, 9001};
  constexpr std::array kCollectives = {Collective::allreduce, Collective::allreduce, Collective::reduce,
                                       Collective::reduce_scatter, Collective::reduce_scatterv};
  draw.count = kCounts[mixed(seed, 3, 0) % kCounts.size()];
  draw.collective = kCollectives[mixed(seed, 8, 0) % kCollectives.size()];
  const bool is_allreduce = draw.collective == Collective::allreduce, is_reduce = draw.collective == Collective::reduce;
  const std::array<const char*, 4> algorithms = {"", "", is_reduce ? "linear" : "direct",
                                                 is_allreduce ? "one_shot"
                                                 : is_reduce  ? "linear"
                                                              : "direct"};
  draw.algorithm = algorithms[mixed(seed, 4, 0) % algorithms.size()];
  if (row_of(draw.collective).has_blocks()) draw.count = 1 + draw.count / static_cast<std::size_t>(ranks);
  draw.root = static_cast<int>(mixed(seed, 9, 0) % static_cast<unsigned>(ranks));
  if (draw.collective == Collective::reduce_scatterv) {
    for (unsigned r = 0; r < static_cast<unsigned>(ranks); ++r)
      draw.counts.push_back(mixed(seed, 10, r) % 3 == 0 ? 0 : mixed(seed, 11, r) % (draw.count + 1));
  }
  draw.form = static_cast<Draw::Form>(mixed(seed, 5, 0) % 3);
  draw.operation = static_cast<Operation>(mixed(seed, 6, 0) % 4);
  if (draw.operation == Operation::user && type % 7 != 0) draw.operation = Operation::sum;
  // Calls that name so many all give the same shares: those of the number.
  const bool names = mixed(seed, 7, 0) % 2 == 0;
  if (names) draw.named = total;
  draw.shares = shares_of(ranks, total, names ? total : seed);
  return draw;
}

}  // namespace col::test
