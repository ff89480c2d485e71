#include "colbench/stats/autocorrelation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "colbench/stats/rank_sum.hpp"

namespace col::colbench {
namespace {

// Beyond it even sides of 20 values that have nothing in common could no longer be told apart.
constexpr double kMost = 0.5;

}  // namespace

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
    ranks.push_back(ranks_of(values));
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
