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

#include <cstddef>
#include <vector>

#include <col/plan.hpp>

#include "plan/simulation/rank_state.hpp"

namespace col::plan::simulation {

struct Alike {
  int ranks = 0;           // from rank 0 on: rank r does what rank r % ranks does
  std::size_t rounds = 0;  // of so many rounds, from the first on; 0: no two ranks are known to be alike
  bool is_all = false;     // these are all that there is; otherwise the work of the last of them may differ
};
// Reads all plans, or as many as tell that they are not alike. `nodes`: of all ranks, numbered from 0 on.
Alike alike_ranks(const std::vector<int>& nodes, const PlanOfRank& plans, const CostModel& model, RoundReader& reader);

}  // namespace col::plan::simulation
