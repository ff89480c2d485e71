// What the ranks of a node tell the one that leads it: counts of a v-form, for plans of two levels.
//
// In gatherv, scatterv and alltoallv, a rank knows the lengths of its own blocks alone. The rank that carries blocks
// for its whole node has to know those of all of its ranks before it can have a plan. These go in a plan of their own,
// whose elements are counts, and which needs no wire.
#pragma once

#include <cstddef>
#include <vector>

#include <col/plan.hpp>

namespace col::plan {

// What this rank tells: its part of PlanRequest::neighbour_counts.
std::vector<std::size_t> counts_to_tell(const PlanRequest& request);
// How many numbers this rank learns: all of PlanRequest::neighbour_counts if it leads its node, otherwise none. The
// root of a collective learns none, either: it knows all counts.
std::size_t counts_to_learn(const PlanRequest& request);
// The plan whose input is the one, and its output the other.
Plan tell_neighbours(const PlanRequest& request);

}  // namespace col::plan
