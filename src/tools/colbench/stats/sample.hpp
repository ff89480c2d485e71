// What the values of one sample say: quantiles, intervals of the median, autocorrelation. All functions are pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace col::colbench {

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

// Linear between the two order statistics beside q (n - 1): type 7 of Hyndman and Fan, "Sample quantiles in statistical
// packages" (1996), the default of R and NumPy. 0 if there are no values. Requires: ascending values, q in [0, 1].
double quantile(std::span<const double> sorted, double q);

// The middle value, or the mean of the two middle ones; 0 if there are none. Reorders `values`.
double median_in_place(std::span<double> values);
double median(std::vector<double> values);

// The median absolute deviation: the median of the distances from the median. Not scaled. 0 when there are no values.
double median_deviation(std::span<const double> values);

// Ranks from 1. Equal values share the mean of their ranks.
struct Ranking {
  std::vector<double> ranks;
  double tie_sum = 0;  // of t^3 - t over the groups of t equal values
};
Ranking ranking_of(std::span<const double> values);

// Values more than 1.5 interquartile ranges below the first or above the third quartile (J. W. Tukey, "Exploratory Data
// Analysis" (1977)). Requires: ascending values.
std::size_t tukey_outliers(std::span<const double> sorted);

// ---- Intervals ------------------------------------------------------------------------------------------------------

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

// ---- Whether values resemble those before them ----------------------------------------------------------------------

// Of each value with the one before, around the mean of all: near 0 when they are independent, near 1 when they drift.
// The end of a series does not precede the start of the next. 0 when nothing can be said.
double lag1_autocorrelation(std::span<const std::vector<double>> series);

// How much wider than that of independent values the variance of the mean of such series is: (1 + r) / (1 - r) with r
// the autocorrelation of the ranks within each series; 1 when r is not distinguishable from 0 (one-sided 5 %), and at
// most 3. G. V. Bayley and J. M. Hammersley, "The 'effective' number of independent observations in an autocorrelated
// time series" (1946).
double dependence_factor(std::span<const std::vector<double>> series);

}  // namespace col::colbench
