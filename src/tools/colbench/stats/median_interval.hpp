// How sure a median is.
#pragma once

#include <cstddef>
#include <span>

#include "colbench/stats/interval.hpp"

namespace col::colbench {

// An interval that holds the median of the distribution with at least 95 %, whatever the distribution: from the k-th
// smallest to the k-th largest sample, with the greatest k for which the binomial distribution allows it, since the
// number of samples below the median is binomial with probability 1/2 (W. R. Thompson, "On confidence ranges for the
// median" (1936); Le Boudec, "Performance Evaluation of Computer and Communication Systems" (2010), section 2.2).
// Below 6 samples no k is sure enough: from 0 to infinity, as durations go. Samples must be independent: where each
// resembles the one before (autocorrelation), the interval is too narrow. Requires: ascending values.
Interval median_interval(std::span<const double> sorted);

// The same of the medians of launches, which are not independent: the machine drifts, so that launches resemble those
// around them, by more than one run can find out. Three of them count as one observation, and six launches at least as
// six: the ends are the order statistics at the part of the launches where those of so many would be. On synthetic
// launches with a drift of a quarter of their variance that lasts for twenty of them it holds the median in 89 % to
// 98 % of runs of 6 to 40 launches, in 97 % and more without a drift; without this care, in 68 % to 95 %
// (tests/unit/colbench/coverage_test.cpp). Requires: ascending values.
Interval launch_interval(std::span<const double> sorted);
inline constexpr std::size_t kFewestLaunches = 6;  // 5 cannot give 95 %: 2 (1/2)^5 is more than 5 %
inline constexpr double kLaunchesPerObservation = 3;

}  // namespace col::colbench
