// Inputs that show what a reduction does with its numbers. All of them are functions of a seed.
#pragma once

#include <random>

#include "support/fold_reference.hpp"

namespace col::test {

// The same calls with each of the operators. An operator is a list: by rank, or one for all.
inline std::vector<Reduction> with_ops(const std::vector<Reduction>& calls, const std::vector<std::vector<Op>>& ops) {
  std::vector<Reduction> all;
  for (const auto& op : ops) {
    for (Reduction call : calls) {
      call.ops = op;
      all.push_back(call);
    }
  }
  return all;
}

// Those that can be in place, so.
inline std::vector<Reduction> in_place(std::vector<Reduction> calls) {
  std::erase_if(calls, [](const Reduction& call) {
    return call.collective == Collective::reduce_scatter || call.collective == Collective::reduce_scatterv;
  });
  for (Reduction& call : calls) call.in_place = true;
  return calls;
}

template <class T, class Make>
PerRank<T> make_inputs(int size, std::size_t count, Make make) {
  PerRank<T> inputs(static_cast<std::size_t>(size), std::vector<T>(count));
  for (int r = 0; r < size; ++r) {
    for (std::size_t i = 0; i < count; ++i) inputs[static_cast<std::size_t>(r)][i] = make(r, i);
  }
  return inputs;
}

// Numbers of both signs whose magnitudes lie in [low, high].
template <class T>
PerRank<T> random_inputs(int size, std::size_t count, std::uint64_t seed, double low, double high) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> magnitude(low, high);
  return make_inputs<T>(size, count, [&](int, std::size_t) {
    const double value = random() % 2 == 0 ? magnitude(random) : -magnitude(random);
    return static_cast<T>(static_cast<Partial<T>>(value));
  });
}

// Numbers of both signs and of magnitudes between 1/16 and 16: most sums are rounded, and another order of adding
// them up gives other bits for many elements.
template <class T>
PerRank<T> ill_conditioned_inputs(int size, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(-4, 4);
  return make_inputs<T>(size, count, [&](int, std::size_t) {
    const double value = std::exp2(exponent(random));
    return static_cast<T>(static_cast<Partial<T>>(random() % 2 == 0 ? value : -value));
  });
}

// All bits random: integers of every size.
template <class T>
PerRank<T> random_integers(int size, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return make_inputs<T>(size, count, [&](int, std::size_t) { return static_cast<T>(random()); });
}

// One number so large that a half is lost when it is added in T, and halves from all other ranks. Each rank has the
// large one in turn, so that it comes first, last and in the middle of every order. float32 holds all their sums.
template <class T>
PerRank<T> halves_beside_a_large_number(int size, std::size_t count) {
  const float large = std::is_same_v<T, bfloat16> ? 256.0F : 2048.0F;  // the unit is 2 from here on
  return make_inputs<T>(size, count, [&](int r, std::size_t i) {
    return T(i % static_cast<std::size_t>(size) == static_cast<std::size_t>(r) ? large : 0.5F);
  });
}

// ---- Special values -------------------------------------------------------------------------------------------------

// The encodings of a binary floating-point type with a given number of bits for the fraction.
template <class T>
struct Encoding {
  using Bits = decltype(bits_of(T{}));
  static constexpr int kFraction = std::is_same_v<T, float16>    ? 10
                                   : std::is_same_v<T, bfloat16> ? 7
                                   : sizeof(T) == 4              ? 23
                                                                 : 52;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  static constexpr Bits kInfinity = static_cast<Bits>((Bits{1} << (8 * sizeof(T) - 1)) - (Bits{1} << kFraction));
  static constexpr Bits kQuiet = static_cast<Bits>(kInfinity | (Bits{1} << (kFraction - 1)));

  static T of(Bits bits) { return std::bit_cast<T>(bits); }
  static T infinity() { return of(kInfinity); }
  // Quiet ones, each rank's with a payload and sign of its own.
  static T nan(int rank) {
    return of(static_cast<Bits>(kQuiet | static_cast<Bits>(rank + 1) | (rank % 2 == 1 ? kSign : Bits{0})));
  }
  static T signaling_nan() { return of(static_cast<Bits>(kInfinity | 1)); }
  static T least_denormal() { return of(1); }
  static T greatest_denormal() { return of(static_cast<Bits>((Bits{1} << kFraction) - 1)); }
  static T negative(T value) { return of(static_cast<Bits>(bits_of(value) ^ kSign)); }
};

// One element of every rank. What any order of summing or multiplying them gives is the same but for a NaN's payload:
// all partial results are exact, or NaN, infinite or zero in every order.
template <class T>
std::vector<std::vector<T>> special_columns(int size) {
  using E = Encoding<T>;
  const auto n = static_cast<std::size_t>(size);
  const auto number = [](std::size_t r) { return static_cast<T>(static_cast<Partial<T>>(r + 1)); };
  const auto zero = static_cast<T>(Partial<T>{0});
  std::vector<T> ordinary, zeros(n, zero), nans;
  for (std::size_t r = 0; r < n; ++r) {
    ordinary.push_back(number(r));
    nans.push_back(E::nan(static_cast<int>(r)));
  }
  std::vector<std::vector<T>> columns = {ordinary, nans, std::vector<T>(n, E::least_denormal())};
  const auto add = [&columns](std::vector<T> column, std::size_t r, T at_r, std::size_t q, T at_q) {
    column[q] = at_q;
    column[r] = at_r;
    columns.push_back(column);
  };
  for (std::size_t r = 0; r < n; ++r) {
    const std::size_t next = (r + 1) % n;
    add(ordinary, r, nans[r], r, nans[r]);
    add(ordinary, r, E::signaling_nan(), r, zero);
    add(ordinary, r, nans[r], next, E::infinity());
    add(ordinary, r, nans[r], next, nans[next]);
    add(ordinary, r, E::infinity(), r, zero);
    add(ordinary, r, E::negative(E::infinity()), r, zero);
    add(ordinary, r, E::infinity(), next, E::negative(E::infinity()));
    add(ordinary, r, E::negative(zero), r, zero);
    add(zeros, r, E::least_denormal(), r, zero);
    add(zeros, r, E::negative(E::least_denormal()), r, zero);
    add(zeros, r, E::greatest_denormal(), next, E::least_denormal());  // their sum is normal
    add(zeros, r, E::greatest_denormal(), next, E::negative(E::least_denormal()));
  }
  for (std::size_t signs = 0; signs < (std::size_t{1} << n); ++signs) {
    std::vector<T> column = zeros;
    for (std::size_t r = 0; r < n; ++r) {
      if ((signs >> r & 1) != 0) column[r] = E::negative(zero);
    }
    columns.push_back(column);
  }
  return columns;
}

// All columns in every block of the vector, since algorithms treat blocks in different orders.
template <class T>
PerRank<T> special_inputs(int size) {
  const auto columns = special_columns<T>(size);
  return make_inputs<T>(size, columns.size() * static_cast<std::size_t>(size),
                        [&](int r, std::size_t i) { return columns[i % columns.size()][static_cast<std::size_t>(r)]; });
}

}  // namespace col::test
