// Whether values resemble those before them.
#pragma once

#include <span>
#include <vector>

namespace col::colbench {

// Of each value with the one before, around the mean of all: near 0 when they are independent, near 1 when they drift.
// The end of a series does not precede the start of the next. 0 when nothing can be said.
double lag1_autocorrelation(std::span<const std::vector<double>> series);

// How much wider than that of independent values the variance of the mean of such series is: (1 + r) / (1 - r) with r
// the autocorrelation of the ranks within each series; 1 when r is not distinguishable from 0 (one-sided 5 %), and at
// most 3. G. V. Bayley and J. M. Hammersley, "The 'effective' number of independent observations in an autocorrelated
// time series" (1946).
double dependence_factor(std::span<const std::vector<double>> series);

}  // namespace col::colbench
