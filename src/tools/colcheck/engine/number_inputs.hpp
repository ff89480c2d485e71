// Inputs that show how a reduction treats its numbers. All of them are functions of their arguments.
#pragma once

#include <random>

#include "colcheck/engine/fold.hpp"

namespace col::colcheck {

template <class T, class Make>
PerRank<T> make_inputs(int size, std::size_t count, Make make) {
  PerRank<T> inputs(static_cast<std::size_t>(size), std::vector<T>(count));
  for (int r = 0; r < size; ++r) {
    for (std::size_t i = 0; i < count; ++i) inputs[static_cast<std::size_t>(r)][i] = make(r, i);
  }
  return inputs;
}

// Numbers of both signs with magnitudes in [low, high].
template <class T>
PerRank<T> random_inputs(int size, std::size_t count, std::uint64_t seed, double low, double high) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> magnitude(low, high);
  return make_inputs<T>(size, count, [&](int, std::size_t) {
    const double value = random() % 2 == 0 ? magnitude(random) : -magnitude(random);
    return static_cast<T>(static_cast<Partial<T>>(value));
  });
}

// Numbers of both signs with magnitudes between 2^-octaves and 2^octaves, all octaves equally often. Most sums are
// rounded, and for many elements another order of adding gives other bits.
template <class T>
PerRank<T> ill_conditioned_inputs(int size, std::size_t count, std::uint64_t seed, double octaves = 4) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(-octaves, octaves);
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

// One number that is so large that `small`, at most 1, is lost when it is added in T; and `small` from all other ranks.
// Each rank has the large number in turn, so it comes first, last and in the middle of every order. float32 holds all
// their sums.
template <class T>
PerRank<T> beside_a_large_number(int size, std::size_t count, float small) {
  const auto large = static_cast<float>(std::uint64_t{1} << kPrecision<T>);  // the unit is 2 from here on
  return make_inputs<T>(size, count, [&](int r, std::size_t i) {
    return T(i % static_cast<std::size_t>(size) == static_cast<std::size_t>(r) ? large : small);
  });
}

}  // namespace col::colcheck
