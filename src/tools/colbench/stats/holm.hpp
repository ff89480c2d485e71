// Many tests at once.
#pragma once

#include <span>
#include <vector>

namespace col::colbench {

// Adjusted so that below alpha there is, with 1 - alpha, none that is there by chance, however many tests there are
// (S. Holm, "A simple sequentially rejective multiple test procedure" (1979)). In the order of `p`.
std::vector<double> holm(std::span<const double> p);

}  // namespace col::colbench
