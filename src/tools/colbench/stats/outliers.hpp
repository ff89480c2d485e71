// Values that are far from the rest.
#pragma once

#include <cstddef>
#include <span>

namespace col::colbench {

// Values more than 1.5 interquartile ranges below the first or above the third quartile (J. W. Tukey, "Exploratory Data
// Analysis" (1977)). Requires: ascending values.
std::size_t tukey_outliers(std::span<const double> sorted);

}  // namespace col::colbench
