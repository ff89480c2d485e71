// How a pipelined algorithm cuts a vector.
#pragma once

#include <algorithm>
#include <cstddef>

#include <col/plan.hpp>

#include "plan/blocks.hpp"

namespace col::plan {

// 64 KiB of float32. This is long enough that a message's fixed cost is small, and short enough to stay in a core's
// cache between arrival and departure.
inline constexpr std::size_t kDefaultSegment = 16384;

// `total` elements in segments of at most parameters.segment elements, as even as possible. At least one segment, even
// if it is empty.
inline Blocks segments(const PlanRequest& request, std::size_t total) noexcept {
  const std::size_t wanted = request.parameters.segment == 0 ? kDefaultSegment : request.parameters.segment;
  return Blocks::even(total, std::max<std::size_t>(1, total / wanted + (total % wanted != 0 ? 1 : 0)));
}

}  // namespace col::plan
