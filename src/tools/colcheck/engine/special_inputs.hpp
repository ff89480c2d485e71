// NaN, infinities, zeros of both signs and denormals: their places, and the values beside them.
#pragma once

#include "colcheck/engine/number_inputs.hpp"

namespace col::colcheck {

// The encodings of a binary floating-point type with the given number of fraction bits.
template <class T>
struct Encoding {
  using Bits = decltype(bits_of(T{}));
  static constexpr int kFraction = kPrecision<T> - 1;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  static constexpr Bits kInfinity = static_cast<Bits>((Bits{1} << (8 * sizeof(T) - 1)) - (Bits{1} << kFraction));
  static constexpr Bits kQuiet = static_cast<Bits>(kInfinity | (Bits{1} << (kFraction - 1)));

  static T of(Bits bits) { return std::bit_cast<T>(bits); }
  static T infinity() { return of(kInfinity); }
  // Quiet NaNs. Each rank has its own payload and sign (up to 63 ranks, for which bfloat16 has room).
  static T nan(int rank) {
    constexpr int kPayloads = kFraction < 7 ? (1 << (kFraction - 1)) - 1 : 63;
    return of(static_cast<Bits>(kQuiet | static_cast<Bits>(rank % kPayloads + 1) | (rank % 2 == 1 ? kSign : Bits{0})));
  }
  static T signaling_nan() { return of(static_cast<Bits>(kInfinity | 1)); }
  static T least_denormal() { return of(1); }
  static T greatest_denormal() { return of(static_cast<Bits>((Bits{1} << kFraction) - 1)); }
  static T negative(T value) { return of(static_cast<Bits>(bits_of(value) ^ kSign)); }
};

// It has one NaN, of either sign, and no infinity, for which that NaN stands in.
template <>
struct Encoding<float8_e4m3fn> {
  using T = float8_e4m3fn;
  static T infinity() { return T::from_bits(0x7f); }
  static T nan(int rank) { return T::from_bits(rank % 2 == 1 ? 0xff : 0x7f); }
  static T signaling_nan() { return nan(0); }
  static T least_denormal() { return T::from_bits(1); }
  static T greatest_denormal() { return T::from_bits(7); }
  static T negative(T value) { return T::from_bits(static_cast<std::uint8_t>(value.bits ^ 0x80)); }
};

// Whole numbers. At most eight of them are not powers of two, so float32 holds their products.
template <class T>
T ordinary_number(std::size_t rank) {
  return static_cast<T>(static_cast<Partial<T>>(rank < 8 ? rank + 1 : 1 + rank % 2));
}

// Zeros, in all combinations of signs over the ranks; if there are too many combinations, some of every kind.
template <class T>
std::vector<std::vector<T>> zero_columns(std::size_t ranks) {
  constexpr std::size_t kAllUpTo = 6;
  std::mt19937_64 random(ranks);
  std::vector<std::vector<T>> columns;
  for (std::size_t number = 0; number < std::size_t{1} << std::min(ranks, kAllUpTo); ++number) {
    const std::uint64_t signs = ranks <= kAllUpTo ? number : random();
    std::vector<T> column(ranks, T{});
    for (std::size_t r = 0; r < ranks; ++r) {
      // With many ranks, in the first columns only one rank has the other sign, and in the first two none.
      const bool negative = ranks <= kAllUpTo || number >= 2 * ranks + 2 ? (signs >> r % 64 & 1) != 0
                                                                         : (number % 2 == 1) != (number / 2 == r + 1);
      if (negative) column[r] = Encoding<T>::negative(T{});
    }
    columns.push_back(column);
  }
  return columns;
}

// One element of every rank. Every order of summing or multiplying them gives the same, except for a NaN's payload: all
// partial results are exact, or NaN, infinite or zero in every order.
template <class T>
std::vector<std::vector<T>> special_columns(int size) {
  using E = Encoding<T>;
  const auto n = static_cast<std::size_t>(size);
  const T zero{};
  std::vector<T> ordinary, zeros(n, zero), nans;
  for (std::size_t r = 0; r < n; ++r) {
    ordinary.push_back(ordinary_number<T>(r));
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
  for (auto& column : zero_columns<T>(n)) columns.push_back(std::move(column));
  return columns;
}

// The columns in turn. In a vector of columns.size() * size elements, each block has all columns, because algorithms
// treat blocks in different orders.
template <class T>
PerRank<T> special_inputs(const std::vector<std::vector<T>>& columns, int size, std::size_t count) {
  return make_inputs<T>(size, count,
                        [&](int r, std::size_t i) { return columns[i % columns.size()][static_cast<std::size_t>(r)]; });
}

template <class T>
PerRank<T> special_inputs(int size) {
  const auto columns = special_columns<T>(size);
  return special_inputs(columns, size, columns.size() * static_cast<std::size_t>(size));
}

}  // namespace col::colcheck
