#include "colbench/stats/quantile.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace col::colbench {

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

}  // namespace col::colbench
