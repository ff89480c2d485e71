// How a pipelined algorithm cuts a vector.
#pragma once

#include <algorithm>
#include <cstddef>

#include <col/plan.hpp>

#include "plan/blocks.hpp"

namespace col::plan {

// 64 KiB of float32: long enough that a message's fixed cost is small beside it, short enough to stay in a core's cache
// between arriving and leaving.
inline constexpr std::size_t kDefaultSegment = 16384;

// `total` elements in segments of parameters.segment elements at most, as even as can be. At least one, if empty.
inline Blocks segments(const PlanRequest& request, std::size_t total) noexcept {
  const std::size_t wanted = request.parameters.segment == 0 ? kDefaultSegment : request.parameters.segment;
  return Blocks::even(total, std::max<std::size_t>(1, total / wanted + (total % wanted != 0 ? 1 : 0)));
}

}  // namespace col::plan
