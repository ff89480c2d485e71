// Confidence intervals of medians.
#pragma once

#include <cstddef>
#include <span>

#include "colbench/stats/interval.hpp"

namespace col::colbench {

// An interval that holds the median of the distribution with a probability of at least 95 %, for every distribution. It
// reaches from the k-th smallest to the k-th largest sample, with the largest k that the binomial distribution allows:
// the number of samples below the median is binomial with probability 1/2 (W. R. Thompson, "On confidence ranges for
// the median" (1936); Le Boudec, "Performance Evaluation of Computer and Communication Systems" (2010), section 2.2).
// Below 6 samples no k is enough: the interval is then from 0 to infinity. Samples must be independent: if each is
// similar to the one before (autocorrelation), the interval is too narrow. Requires: ascending values.
Interval median_interval(std::span<const double> sorted);

// The same for the medians of launches, which are not independent: the machine drifts, so launches are similar to their
// neighbours, and a single run cannot find out by how much. Three launches count as one observation, and six launches
// at least count as six. The ends are the order statistics at the same relative positions as for this number of
// independent launches. On synthetic launches with a drift of a quarter of their variance that lasts for twenty of
// them, the interval holds the median in 89 % to 98 % of runs of 6 to 40 launches, and in 97 % or more without a drift;
// without this correction, in 68 % to 95 % (tests/unit/colbench/coverage_test.cpp). Requires: ascending values.
Interval launch_interval(std::span<const double> sorted);
inline constexpr std::size_t kFewestLaunches = 6;  // 5 cannot give 95 %: 2 (1/2)^5 is more than 5 %
inline constexpr double kLaunchesPerObservation = 3;

}  // namespace col::colbench
