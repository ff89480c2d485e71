// Correction for many tests at once.
#pragma once

#include <span>
#include <vector>

namespace col::colbench {

// Adjusts p-values so that, with probability 1 - alpha, none is below alpha by chance, however many tests there are (S.
// Holm, "A simple sequentially rejective multiple test procedure" (1979)). In the order of `p`.
std::vector<double> holm(std::span<const double> p);

}  // namespace col::colbench
