#include "colbench/stats/rank_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace col::colbench {
namespace {

struct Ranking {
  std::vector<double> ranks;
  double tie_sum = 0;  // of t^3 - t over the groups of t equal values
};

Ranking rank(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  Ranking ranking{std::vector<double>(values.size())};
  for (std::size_t first = 0, end; first < order.size(); first = end) {
    end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) ranking.ranks[order[i]] = static_cast<double>(first + 1 + end) / 2;
    const auto equal = static_cast<double>(end - first);
    ranking.tie_sum += equal * equal * equal - equal;
  }
  return ranking;
}

// Of all ways to choose the ranks of b values among a + b: the share in which U, the pairs that b wins, is at most `u`.
double share_of_orders(std::size_t a, std::size_t b, std::size_t u) {
  // The generating function of U is the Gaussian binomial coefficient: the product of (1 - x^(a+i)) / (1 - x^i).
  std::vector<double> orders(a * b + 1, 0.0);
  orders[0] = 1;
  for (std::size_t i = 1; i <= b; ++i) {
    for (std::size_t j = a * b; j >= a + i; --j) orders[j] -= orders[j - a - i];
    for (std::size_t j = i; j <= a * b; ++j) orders[j] += orders[j - i];
  }
  const double total = std::accumulate(orders.begin(), orders.end(), 0.0);
  return std::accumulate(orders.begin(), orders.begin() + static_cast<std::ptrdiff_t>(u) + 1, 0.0) / total;
}

}  // namespace

std::vector<double> ranks_of(std::span<const double> values) {
  return rank(values).ranks;
}

double rank_sum_p(std::span<const double> a, std::span<const double> b, double variance_factor) {
  if (a.empty() || b.empty()) return 1;
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  const Ranking ranking = rank(all);
  const auto size_a = static_cast<double>(a.size()), size_b = static_cast<double>(b.size());
  const double sum_b =
      std::accumulate(ranking.ranks.begin() + static_cast<std::ptrdiff_t>(a.size()), ranking.ranks.end(), 0.0);
  const double wins_b = sum_b - size_b * (size_b + 1) / 2;
  const double fewer_wins = std::min(wins_b, size_a * size_b - wins_b);

  const bool exact = ranking.tie_sum == 0 && variance_factor == 1 && std::max(a.size(), b.size()) <= kMostExact;
  if (exact) return std::min(1.0, 2 * share_of_orders(a.size(), b.size(), static_cast<std::size_t>(fewer_wins)));

  const double size = size_a + size_b;
  const double variance = size_a * size_b / 12 * (size + 1 - ranking.tie_sum / (size * (size - 1)));
  if (variance <= 0) return 1;  // all are equal
  const double distance = std::max(0.0, size_a * size_b / 2 - fewer_wins - 0.5);
  return std::erfc(distance / std::sqrt(2 * variance * variance_factor));
}

Interval rank_sum_ratios(std::span<const double> a, std::span<const double> b, double variance_factor) {
  const auto size_a = static_cast<double>(a.size()), size_b = static_cast<double>(b.size());
  const double deviation = std::sqrt(variance_factor * size_a * size_b * (size_a + size_b + 1) / 12);
  const double end = std::floor(size_a * size_b / 2 - 1.96 * deviation);
  if (end < 1) return {0, std::numeric_limits<double>::infinity()};
  std::vector<double> ratios;
  for (const double below : a)
    for (const double above : b) ratios.push_back(above / below);
  std::sort(ratios.begin(), ratios.end());
  const auto k = static_cast<std::size_t>(end);
  return {ratios[k - 1], ratios[ratios.size() - k]};
}

double smallest_rank_sum_p(std::size_t a, std::size_t b) {
  double orders = 1;  // a + b over b
  for (std::size_t i = 1; i <= b; ++i) orders *= static_cast<double>(a + i) / static_cast<double>(i);
  return std::min(1.0, 2 / orders);
}

}  // namespace col::colbench
