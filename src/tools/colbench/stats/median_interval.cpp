#include "colbench/stats/median_interval.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

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

}  // namespace

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

}  // namespace col::colbench
