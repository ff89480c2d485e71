// How sure a median is.
#pragma once

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

}  // namespace col::colbench
