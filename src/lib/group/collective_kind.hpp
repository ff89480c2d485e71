// What kinds of collectives there are.
#pragma once

#include <col/backend.hpp>

namespace col::group {

constexpr bool is_reduction(Collective collective) noexcept {
  return collective == Collective::allreduce || collective == Collective::reduce;
}

constexpr bool is_rooted(Collective collective) noexcept {
  return collective == Collective::reduce || collective == Collective::broadcast || collective == Collective::gather ||
         collective == Collective::scatter;
}

}  // namespace col::group
