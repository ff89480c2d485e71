// How many steps a rank's plan has: where COL_FAULT can strike.
#pragma once

#include "colcheck/engine/case.hpp"

namespace col::colcheck {

// Of one rank in the case's call, by the case's algorithm. 1 for a backend's own algorithm, which is one step to col.
// 0 when no plan can be made for it.
int count_steps(const Case& c, int rank);

}  // namespace col::colcheck
