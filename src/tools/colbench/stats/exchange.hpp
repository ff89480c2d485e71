// The rank-sum test for two samples that were taken in turn.
#pragma once

#include <cstddef>
#include <span>

namespace col::colbench {

// The two-sided p of the rank sum of b, where a[i] and b[i] were taken next to each other and are exchangeable when
// there is no difference. What disturbs the machine for longer than one of them disturbs both, so that the sums that
// the ranks could have had are those of all ways to exchange a[i] and b[i] (R. A. Fisher, "The Design of Experiments"
// (1935), section 21). All 2^n of them are counted: exact, with ties and whatever the distribution.
// Requires: equally many.
double exchange_p(std::span<const double> a, std::span<const double> b);

// The smallest p that it can reach with so many pairs.
double smallest_exchange_p(std::size_t pairs);

}  // namespace col::colbench
