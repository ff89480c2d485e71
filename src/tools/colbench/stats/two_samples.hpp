// What two samples say against each other, for all distributions. All functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "colbench/stats/sample.hpp"

namespace col::colbench {

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

// The two-sided p of the rank sum of b. a[i] and b[i] were taken next to each other, and can be exchanged if there is
// no difference. A disturbance of the machine that lasts longer than one of them affects both. So the possible rank
// sums are those of all ways to exchange a[i] and b[i] (R. A. Fisher, "The Design of Experiments" (1935), section 21).
// All 2^n of them are counted: the result is exact, with ties and for every distribution. Requires: equal numbers of
// values.
double exchange_p(std::span<const double> a, std::span<const double> b);

// The smallest p that it can reach with so many pairs.
double smallest_exchange_p(std::size_t pairs);

struct Bootstrap {
  int resamples = 2000;
  std::uint64_t seed = 1;
};

// The 95 % percentile interval of median(b) / median(a): the middle 95 % of the ratios that samples drawn from these,
// with replacement, have (Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), section 13.3). a[i] and b[i]
// were taken next to each other, and are drawn together. The same seed gives the same interval on every machine. From 0
// to infinity when there are no values. Requires: positive values, equally many.
Interval ratio_interval(std::span<const double> a, std::span<const double> b, const Bootstrap& bootstrap);

// Adjusts p-values so that, with probability 1 - alpha, none is below alpha by chance, however many tests there are (S.
// Holm, "A simple sequentially rejective multiple test procedure" (1979)). In the order of `p`.
std::vector<double> holm(std::span<const double> p);

// ---- Whether two quantities have the same order ---------------------------------------------------------------------

// Spearman's rank correlation: 1 for the same order, -1 for the opposite order. Equal values share the mean of their
// ranks. Nothing for fewer than two pairs, or if one side has only one value. Requires: equal lengths.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace col::colbench
