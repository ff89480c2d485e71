#include "colbench/stats/bootstrap.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include "colbench/stats/quantile.hpp"

namespace col::colbench {

Interval ratio_interval(std::span<const double> a, std::span<const double> b, const Bootstrap& bootstrap) {
  if (a.empty() || b.empty()) return {0, std::numeric_limits<double>::infinity()};
  // The engine gives the same numbers everywhere; std's distributions do not.
  std::mt19937_64 random(bootstrap.seed);
  std::vector<double> drawn_a(a.size()), drawn_b(b.size()), ratios;
  ratios.reserve(static_cast<std::size_t>(bootstrap.resamples));
  for (int i = 0; i < bootstrap.resamples; ++i) {
    if (bootstrap.paired) {
      for (std::size_t j = 0; j < a.size(); ++j) {
        const std::size_t pair = random() % a.size();
        drawn_a[j] = a[pair];
        drawn_b[j] = b[pair];
      }
    } else {
      for (double& value : drawn_a) value = a[random() % a.size()];
      for (double& value : drawn_b) value = b[random() % b.size()];
    }
    ratios.push_back(median_in_place(drawn_b) / median_in_place(drawn_a));
  }
  std::sort(ratios.begin(), ratios.end());
  return {quantile(ratios, 0.025), quantile(ratios, 0.975)};
}

}  // namespace col::colbench
