// Whether one sample tends to be larger than another, whatever their distributions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "colbench/stats/interval.hpp"

namespace col::colbench {

// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks_of(std::span<const double> values);

// The two-sided p of the rank-sum test (Mann and Whitney, "On a test of whether one of two random variables is
// stochastically larger than the other" (1947)). Without ties and with at most kMostExact values on either side it
// counts orders, which is exact; else the normal approximation with corrections for ties and for continuity.
// Values must be exchangeable when there is no difference. Where each resembles the one before, that does not hold:
// `variance_factor` > 1 widens the normal approximation accordingly. 1 when a side is empty.
double rank_sum_p(std::span<const double> a, std::span<const double> b, double variance_factor = 1);
inline constexpr std::size_t kMostExact = 50;

// The ratios of b to a at which such a test would not tell b from a times that ratio, 95 %: between the k-th smallest
// and the k-th largest of all b[j] / a[i] (J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests"
// (1963)), by the normal approximation. From 0 to infinity when there are too few values for an end. Requires: positive
// values.
Interval rank_sum_ratios(std::span<const double> a, std::span<const double> b, double variance_factor = 1);

// The smallest p that it can reach with so many values: all of one side below the other.
double smallest_rank_sum_p(std::size_t a, std::size_t b);

}  // namespace col::colbench
