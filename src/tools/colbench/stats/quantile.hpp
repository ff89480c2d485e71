// Quantiles of samples.
#pragma once

#include <span>
#include <vector>

namespace col::colbench {

// Linear between the two order statistics beside q (n - 1): type 7 of Hyndman and Fan, "Sample quantiles in statistical
// packages" (1996), the default of R and NumPy. 0 if there are no values. Requires: ascending values, q in [0, 1].
double quantile(std::span<const double> sorted, double q);

// The middle value, or the mean of the two middle ones; 0 if there are none. Reorders `values`.
double median_in_place(std::span<double> values);
double median(std::vector<double> values);

}  // namespace col::colbench
