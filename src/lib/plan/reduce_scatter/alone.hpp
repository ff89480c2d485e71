// reduce_scatter in a group of one rank.
#pragma once

#include <cstddef>

#include <col/plan.hpp>

#include "plan/blocks.hpp"
#include "plan/support.hpp"

namespace col::plan::reduce_scatter {

// The only contribution is the result. In the v-form, it begins at its displacement.
inline Plan alone(const PlanRequest& request) {
  const Slice own = Blocks::of_input(request).slice(Buffer::input, 0);
  return make_plan(1, Scratch{}, [own](std::size_t, Round& round) {
    round.convert({Buffer::output, 0, own.count}, own);
  });
}

}  // namespace col::plan::reduce_scatter
