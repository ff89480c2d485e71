#include "colbench/stats/sample.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace col::colbench {
namespace {

constexpr double kTail = 0.025;  // on either side

// The greatest k with P(fewer than k of n samples are below the median) <= kTail; 0 if there is none.
std::size_t rank_of_end(std::size_t n) {
  // Beyond 20 standard deviations of sqrt(n) / 2, binomial weights are nothing to a double.
  const std::size_t middle = n / 2;
  const auto reach = static_cast<std::size_t>(10 * std::sqrt(static_cast<double>(n))) + 1;
  const std::size_t first = middle > reach ? middle - reach : 0;
  const std::size_t last = std::min(n, middle + reach);

  // Weights relative to the middle one, so that nothing overflows.
  std::vector<double> weights(last - first + 1);
  weights[middle - first] = 1;
  for (std::size_t k = middle; k > first; --k)
    weights[k - 1 - first] = weights[k - first] * static_cast<double>(k) / static_cast<double>(n - k + 1);
  for (std::size_t k = middle; k < last; ++k)
    weights[k + 1 - first] = weights[k - first] * static_cast<double>(n - k) / static_cast<double>(k + 1);
  double total = 0;
  for (const double weight : weights) total += weight;

  double below = 0;
  for (std::size_t k = first; k <= middle; ++k) {
    below += weights[k - first];
    if (below > kTail * total) return k;
  }
  return middle;
}

// Beyond it even sides of 20 values that have nothing in common could no longer be told apart.
constexpr double kMost = 0.5;

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  if (sorted.empty()) return 0;
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = position - static_cast<double>(below);
  return share == 0 ? sorted[below] : sorted[below] + share * (sorted[above] - sorted[below]);
}

double median_in_place(std::span<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double median(std::vector<double> values) {
  return median_in_place(values);
}

double median_deviation(std::span<const double> values) {
  std::vector<double> distances(values.begin(), values.end());
  const double middle = median(distances);
  for (double& value : distances) value = std::abs(value - middle);
  return median_in_place(distances);
}

Ranking ranking_of(std::span<const double> values) {
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

std::size_t tukey_outliers(std::span<const double> sorted) {
  const double first = quantile(sorted, 0.25), third = quantile(sorted, 0.75);
  const double reach = 1.5 * (third - first);
  const auto below = std::lower_bound(sorted.begin(), sorted.end(), first - reach) - sorted.begin();
  const auto above = sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), third + reach);
  return static_cast<std::size_t>(below + above);
}

Interval median_interval(std::span<const double> sorted) {
  const std::size_t end = rank_of_end(sorted.size());
  if (end == 0) return {0, std::numeric_limits<double>::infinity()};
  return {sorted[end - 1], sorted[sorted.size() - end]};
}

Interval launch_interval(std::span<const double> sorted) {
  const std::size_t size = sorted.size();
  if (size < kFewestLaunches) return {0, std::numeric_limits<double>::infinity()};
  const auto independent = static_cast<std::size_t>(static_cast<double>(size) / kLaunchesPerObservation);
  const std::size_t counted = std::max(kFewestLaunches, independent);
  const std::size_t end = std::clamp<std::size_t>(rank_of_end(counted) * size / counted, 1, rank_of_end(size));
  return {sorted[end - 1], sorted[size - end]};
}

double lag1_autocorrelation(std::span<const std::vector<double>> series) {
  double sum = 0;
  std::size_t size = 0, pairs = 0;
  for (const auto& values : series) {
    for (const double value : values) sum += value;
    size += values.size();
    pairs += values.empty() ? 0 : values.size() - 1;
  }
  if (pairs == 0) return 0;
  const double mean = sum / static_cast<double>(size);
  double squares = 0, products = 0;
  for (const auto& values : series) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      squares += (values[i] - mean) * (values[i] - mean);
      if (i > 0) products += (values[i] - mean) * (values[i - 1] - mean);
    }
  }
  if (squares == 0) return 0;
  return (products / static_cast<double>(pairs)) / (squares / static_cast<double>(size));
}

double dependence_factor(std::span<const std::vector<double>> series) {
  // Ranks, for a single doubled time must not decide; of each series alone, for their levels may differ.
  std::vector<std::vector<double>> ranks;
  std::size_t size = 0;
  for (const auto& values : series) {
    ranks.push_back(ranking_of(values).ranks);
    for (double& value : ranks.back()) value -= static_cast<double>(values.size() + 1) / 2;
    size += values.size();
  }
  if (size == 0) return 1;
  // Taking the mean from the values themselves makes r too small, by about 1/n for each series.
  const double bias = static_cast<double>(series.size()) / static_cast<double>(size);
  const double r = lag1_autocorrelation(ranks) + bias;
  if (r < 1.645 / std::sqrt(static_cast<double>(size))) return 1;
  const double held = std::min(r, kMost);
  return (1 + held) / (1 - held);
}

}  // namespace col::colbench
