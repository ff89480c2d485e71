// Pairwise covering: few rows that contain every possible pair of values of two different parameters.
#pragma once

#include <cstddef>
#include <functional>
#include <random>
#include <vector>

namespace col::colcheck {

// One value of every parameter, by number.
using Row = std::vector<int>;

struct Choice {
  std::size_t parameter = 0;
  int value = 0;
  auto operator<=>(const Choice&) const = default;
};
struct Parameters {
  std::vector<int> values;  // the number of values of each parameter
  // Whether the two may be in one row. The first one has the smaller parameter.
  std::function<bool(Choice, Choice)> compatible;
};

// Rows that contain all pairs that are possible in some row. Each row is made for a missing pair, and greedily takes in
// other missing pairs.
std::vector<Row> cover(const Parameters& parameters, std::mt19937_64& random);

}  // namespace col::colcheck
