// How sure a ratio of medians is.
#pragma once

#include <cstdint>
#include <span>

#include "colbench/stats/interval.hpp"

namespace col::colbench {

struct Bootstrap {
  int resamples = 2000;
  std::uint64_t seed = 1;
  // a[i] and b[i] were taken next to each other, and are drawn together. Requires: equally many.
  bool paired = false;
};

// The 95 % percentile interval of median(b) / median(a): the middle 95 % of the ratios that samples drawn from these,
// with replacement, have (Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), section 13.3). The same seed
// gives the same interval on every machine. From 0 to infinity when a side is empty. Requires: positive values.
Interval ratio_interval(std::span<const double> a, std::span<const double> b, const Bootstrap& bootstrap);

}  // namespace col::colbench
