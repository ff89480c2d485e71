// Tests whether one sample tends to be larger than another, for all distributions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "colbench/stats/interval.hpp"

namespace col::colbench {

// Ranks from 1. Equal values share the mean of their ranks.
std::vector<double> ranks_of(std::span<const double> values);

// The two-sided p of the rank-sum test (Mann and Whitney, "On a test of whether one of two random variables is
// stochastically larger than the other" (1947)). Without ties and with at most kMostExact values on either side, it
// counts orders, which is exact. Otherwise it uses the normal approximation with corrections for ties and for
// continuity. Values must be exchangeable if there is no difference. They are not if each is similar to the one before:
// `variance_factor` > 1 widens the normal approximation accordingly. 1 if a side is empty.
double rank_sum_p(std::span<const double> a, std::span<const double> b, double variance_factor = 1);
inline constexpr std::size_t kMostExact = 50;

// The 95 % interval of the ratios of b to a at which such a test would not distinguish b from a times that ratio:
// between the k-th smallest and the k-th largest of all b[j] / a[i] (J. L. Hodges and E. L. Lehmann, "Estimates of
// location based on rank tests" (1963)), by the normal approximation. From 0 to infinity if there are too few values
// for an end. Requires: positive values.
Interval rank_sum_ratios(std::span<const double> a, std::span<const double> b, double variance_factor = 1);

// The smallest p for this number of values: all values of one side are below the other side.
double smallest_rank_sum_p(std::size_t a, std::size_t b);

}  // namespace col::colbench
