// How far values lie from their median.
#pragma once

#include <span>

namespace col::colbench {

// The median absolute deviation: the median of the distances from the median. Not scaled. 0 when there are no values.
double median_deviation(std::span<const double> values);

}  // namespace col::colbench
