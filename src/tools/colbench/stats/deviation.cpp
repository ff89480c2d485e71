#include "colbench/stats/deviation.hpp"

#include <cmath>
#include <vector>

#include "colbench/stats/quantile.hpp"

namespace col::colbench {

double median_deviation(std::span<const double> values) {
  std::vector<double> distances(values.begin(), values.end());
  const double middle = median(distances);
  for (double& value : distances) value = std::abs(value - middle);
  return median_in_place(distances);
}

}  // namespace col::colbench
