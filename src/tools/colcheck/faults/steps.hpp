// How many steps a rank's plan has: the places where COL_FAULT can strike.
#pragma once

#include "colcheck/engine/case.hpp"

namespace col::colcheck {

// For one rank in the case's call, with the case's algorithm. 1 for a backend's own algorithm, which is one step for
// col. 0 if no plan can be made for it.
int count_steps(const Case& c, int rank);

}  // namespace col::colcheck
