#include "colbench/stats/two_samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>

namespace col::colbench {
namespace {

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

double rank_sum_p(std::span<const double> a, std::span<const double> b, double variance_factor) {
  if (a.empty() || b.empty()) return 1;
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  const Ranking ranking = ranking_of(all);
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

double exchange_p(std::span<const double> a, std::span<const double> b) {
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  const std::vector<double> ranks = ranking_of(all).ranks;

  // Ranks are whole or half numbers: twice their difference is whole. Sums are counted from -most to most.
  std::vector<long> differences(a.size());
  long sum = 0, most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences[i] = std::lround(2 * (ranks[a.size() + i] - ranks[i]));
    sum += differences[i];
    most += std::labs(differences[i]);
  }
  std::vector<double> shares(static_cast<std::size_t>(2 * most + 1), 0.0);
  shares[static_cast<std::size_t>(most)] = 1;
  for (const long difference : differences) {
    std::vector<double> next(shares.size(), 0.0);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (shares[i] == 0) continue;
      next[i + static_cast<std::size_t>(std::labs(difference))] += shares[i] / 2;
      next[i - static_cast<std::size_t>(std::labs(difference))] += shares[i] / 2;
    }
    shares = std::move(next);
  }
  double as_far = 0;
  for (long i = -most; i <= most; ++i)
    if (std::labs(i) >= std::labs(sum)) as_far += shares[static_cast<std::size_t>(i + most)];
  return std::min(1.0, as_far);
}

double smallest_exchange_p(std::size_t pairs) {
  return std::min(1.0, 2 * std::exp2(-static_cast<double>(pairs)));
}

Interval ratio_interval(std::span<const double> a, std::span<const double> b, const Bootstrap& bootstrap) {
  if (a.empty()) return {0, std::numeric_limits<double>::infinity()};
  // The engine gives the same numbers everywhere; std's distributions do not.
  std::mt19937_64 random(bootstrap.seed);
  std::vector<double> drawn_a(a.size()), drawn_b(b.size()), ratios;
  ratios.reserve(static_cast<std::size_t>(bootstrap.resamples));
  for (int i = 0; i < bootstrap.resamples; ++i) {
    for (std::size_t j = 0; j < a.size(); ++j) {
      const std::size_t pair = random() % a.size();
      drawn_a[j] = a[pair];
      drawn_b[j] = b[pair];
    }
    ratios.push_back(median_in_place(drawn_b) / median_in_place(drawn_a));
  }
  std::sort(ratios.begin(), ratios.end());
  return {quantile(ratios, 0.025), quantile(ratios, 0.975)};
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return p[i] < p[j]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) return std::nullopt;
  const std::vector<double> x = ranking_of(a).ranks, y = ranking_of(b).ranks;
  const double mean = static_cast<double>(a.size() + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

}  // namespace col::colbench
