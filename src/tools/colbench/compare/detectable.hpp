// How small a slowdown this machine can still show.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "colbench/compare/effect.hpp"

namespace col::colbench {

// The smallest slowdown, in steps of 0.5 % up to 100 %, that `rule` calls slower with 90 % power in a comparison of one
// row with `launches` a side; nothing if there is none. It is found by simulation. Both sides are drawn from the
// measured launches, where a[i] and b[i] are next to each other in time and do not differ, and one side is made slower.
// Launches are drawn in stretches of four in a row, so that bursts of noise stay bursts (Künsch, "The jackknife and the
// bootstrap for general stationary observations" (1989)): as pairs if rule.interleaved, otherwise as single launches,
// separately for each side. Deterministic.
std::optional<double> smallest_detectable(std::span<const double> a, std::span<const double> b, std::size_t launches,
                                          Rule rule);

}  // namespace col::colbench
