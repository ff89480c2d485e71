#include "colcheck/engine/covering.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace col::colcheck {
namespace {

constexpr int kOpen = -1;

// The smaller parameter first.
using Pair = std::pair<Choice, Choice>;

Pair pair_of(Choice a, Choice b) {
  return a.parameter < b.parameter ? Pair{a, b} : Pair{b, a};
}

bool fits(const Parameters& parameters, const Row& row, Choice choice) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == kOpen || i == choice.parameter) continue;
    const auto [a, b] = pair_of({i, row[i]}, choice);
    if (!parameters.compatible(a, b)) return false;
  }
  return true;
}

int gain(const Row& row, Choice choice, const std::set<Pair>& wanted) {
  int count = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] != kOpen && wanted.count(pair_of({i, row[i]}, choice)) > 0) ++count;
  }
  return count;
}

// Fills the open parameters from order[next] on; backtracks. The most useful values are tried first.
bool fill(const Parameters& parameters, Row& row, const std::vector<std::size_t>& order, std::size_t next,
          const std::set<Pair>& wanted, std::mt19937_64& random) {
  if (next == order.size()) return true;
  const std::size_t parameter = order[next];
  if (row[parameter] != kOpen) return fill(parameters, row, order, next + 1, wanted, random);
  std::vector<int> values(static_cast<std::size_t>(parameters.values[parameter]));
  std::iota(values.begin(), values.end(), 0);
  std::erase_if(values, [&](int value) { return !fits(parameters, row, {parameter, value}); });
  std::shuffle(values.begin(), values.end(), random);
  std::vector<int> gains(static_cast<std::size_t>(parameters.values[parameter]));
  for (const int value : values) gains[static_cast<std::size_t>(value)] = gain(row, {parameter, value}, wanted);
  std::stable_sort(values.begin(), values.end(), [&](int a, int b) {
    return gains[static_cast<std::size_t>(a)] > gains[static_cast<std::size_t>(b)];
  });
  for (const int value : values) {
    row[parameter] = value;
    if (fill(parameters, row, order, next + 1, wanted, random)) return true;
  }
  row[parameter] = kOpen;
  return false;
}

// A row with both choices, whose other values are chosen so that it contains many pairs of `wanted`; nothing if there
// is none.
std::optional<Row> complete(const Parameters& parameters, const Pair& pair, const std::set<Pair>& wanted,
                            std::mt19937_64& random) {
  Row row(parameters.values.size(), kOpen);
  row[pair.first.parameter] = pair.first.value;
  row[pair.second.parameter] = pair.second.value;
  if (!parameters.compatible(pair.first, pair.second)) return std::nullopt;
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  if (!fill(parameters, row, order, 0, wanted, random)) return std::nullopt;
  return row;
}

std::set<Pair> possible_pairs(const Parameters& parameters) {
  std::set<Pair> possible;
  std::mt19937_64 random(1);
  for (std::size_t p = 0; p < parameters.values.size(); ++p) {
    for (std::size_t q = p + 1; q < parameters.values.size(); ++q) {
      for (int a = 0; a < parameters.values[p]; ++a) {
        for (int b = 0; b < parameters.values[q]; ++b) {
          const Pair pair{{p, a}, {q, b}};
          if (complete(parameters, pair, {}, random)) possible.insert(pair);
        }
      }
    }
  }
  return possible;
}

std::set<Pair> pairs_of(const Row& row) {
  std::set<Pair> pairs;
  for (std::size_t p = 0; p < row.size(); ++p) {
    for (std::size_t q = p + 1; q < row.size(); ++q) pairs.insert({{p, row[p]}, {q, row[q]}});
  }
  return pairs;
}

}  // namespace

std::vector<Row> cover(const Parameters& parameters, std::mt19937_64& random) {
  std::set<Pair> missing = possible_pairs(parameters);
  std::vector<Row> rows;
  while (!missing.empty()) {
    auto pick = missing.begin();
    std::advance(pick, static_cast<std::ptrdiff_t>(random() % missing.size()));
    const auto row = complete(parameters, *pick, missing, random);
    for (const Pair& pair : pairs_of(*row)) missing.erase(pair);
    rows.push_back(*row);
  }
  return rows;
}

}  // namespace col::colcheck
