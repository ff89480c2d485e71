// Pairwise covering: few rows, in which every two values of two different parameters that can occur together do.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace col::colcheck {

// One value of every parameter, by number.
using Row = std::vector<int>;

struct Choice {
  std::size_t parameter = 0;
  int value = 0;
  auto operator<=>(const Choice&) const = default;
};
// The smaller parameter first.
using Pair = std::pair<Choice, Choice>;

struct Parameters {
  std::vector<int> values;  // how many each parameter has
  // Whether the two may be in one row; the parameter of the first is the smaller one.
  std::function<bool(Choice, Choice)> compatible;
};

// A row with both choices, whose other values are chosen so that it contains many pairs of `wanted`; nothing if there
// is none.
std::optional<Row> complete(const Parameters& parameters, const Pair& pair, const std::set<Pair>& wanted,
                            std::mt19937_64& random);

// Every pair that is in some row.
std::set<Pair> possible_pairs(const Parameters& parameters);
std::set<Pair> pairs_of(const Row& row);

// Rows that have all possible pairs: each is made for one that was still missing, and takes along others greedily.
std::vector<Row> cover(const Parameters& parameters, std::mt19937_64& random);

}  // namespace col::colcheck
