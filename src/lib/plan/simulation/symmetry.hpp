// Ranks that do the same at the same time, of which one is simulated for all.
//
// Many plans look alike from every node: rank r + k does what rank r does, with peers that are k further, where k ranks
// are on each node, and rank 0 follows the last. Then nothing but its number tells a rank of one node from that of
// another: they send, wait and end at the same times. A plan of a million messages on 512 nodes is one of two thousand.
//
// The exception is what goes to whoever asks first. Who asks at the same instant comes in an order that does not look
// alike from every node. Cores decide by it often, so ranks that share cores are simulated all. Ports hardly ever do:
// the times of all built-in algorithms are the same either way (tests/unit/plan/symmetry_test.cpp).
#pragma once

#include <vector>

#include <col/plan.hpp>

#include "plan/simulation/rank_state.hpp"

namespace col::plan::simulation {

// How many ranks, from rank 0 on, stand for all: rank r does what rank r % k does. The size of the group if that is not
// so. Reads all plans, or as many as tell that it is not. `nodes`: of all ranks, numbered from 0 on.
int ranks_that_differ(const std::vector<int>& nodes, const PlanOfRank& plans, const CostModel& model,
                      RoundReader& reader);

}  // namespace col::plan::simulation
