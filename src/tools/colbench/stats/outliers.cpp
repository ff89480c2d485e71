#include "colbench/stats/outliers.hpp"

#include <algorithm>

#include "colbench/stats/quantile.hpp"

namespace col::colbench {

std::size_t tukey_outliers(std::span<const double> sorted) {
  const double first = quantile(sorted, 0.25), third = quantile(sorted, 0.75);
  const double reach = 1.5 * (third - first);
  const auto below = std::lower_bound(sorted.begin(), sorted.end(), first - reach) - sorted.begin();
  const auto above = sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), third + reach);
  return static_cast<std::size_t>(below + above);
}

}  // namespace col::colbench
