// Pairwise covering: few rows that contain every possible pair of values of two different parameters.
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
  std::vector<int> values;  // the number of values of each parameter
  // Whether the two may be in one row. The first one has the smaller parameter.
  std::function<bool(Choice, Choice)> compatible;
};

// A row with both choices, whose other values are chosen so that it contains many pairs of `wanted`; nothing if there
// is none.
std::optional<Row> complete(const Parameters& parameters, const Pair& pair, const std::set<Pair>& wanted,
                            std::mt19937_64& random);

// Every pair that is possible in some row.
std::set<Pair> possible_pairs(const Parameters& parameters);
std::set<Pair> pairs_of(const Row& row);

// Rows that contain all possible pairs. Each row is made for a missing pair, and greedily takes in other missing pairs.
std::vector<Row> cover(const Parameters& parameters, std::mt19937_64& random);

}  // namespace col::colcheck
