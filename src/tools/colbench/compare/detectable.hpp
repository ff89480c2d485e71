// How small a slowdown can be and still be seen on this machine.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "colbench/compare/effect.hpp"

namespace col::colbench {

// The smallest slowdown, in steps of 0.5 % up to 100 %, that `rule` calls slower with 90 % power in a comparison of one
// row with `launches` a side; nothing when none of them is. By simulation: both sides are drawn from the launches that
// were measured, a[i] and b[i] next to each other in time and without a difference, and one side is made slower. Drawn
// in stretches of four in a row, so that bursts of noise stay bursts (Künsch, "The jackknife and the bootstrap for
// general stationary observations" (1989)): of pairs when rule.interleaved, else of single launches, each side for
// itself. The same every time.
std::optional<double> smallest_detectable(std::span<const double> a, std::span<const double> b, std::size_t launches,
                                          Rule rule);

}  // namespace col::colbench
