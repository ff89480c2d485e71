// The rank-sum test for two samples that were taken in turn.
#pragma once

#include <cstddef>
#include <span>

namespace col::colbench {

// The two-sided p of the rank sum of b. a[i] and b[i] were taken next to each other, and can be exchanged if there is
// no difference. A disturbance of the machine that lasts longer than one of them affects both. So the possible rank
// sums are those of all ways to exchange a[i] and b[i] (R. A. Fisher, "The Design of Experiments" (1935), section 21).
// All 2^n of them are counted: the result is exact, with ties and for every distribution. Requires: equal numbers of
// values.
double exchange_p(std::span<const double> a, std::span<const double> b);

// The smallest p that it can reach with so many pairs.
double smallest_exchange_p(std::size_t pairs);

}  // namespace col::colbench
