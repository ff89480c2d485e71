// Equal shares of a node's cores.
#pragma once

#include <span>
#include <vector>

#include "launch/place/topology.hpp"

namespace col::launch {

using Share = std::vector<Core>;  // by NUMA node, cache and processor

// One share for each rank: all have the same number of cores, as many as there are for each; cores that are left over
// have no rank. A share has the cores of one third-level cache if they suffice, else those of one NUMA node, and is
// torn apart only where that many cannot be had together. So ranks get whole caches or whole nodes when these divide.
// When not all cores are needed, every node gives some. Neighbours in rank are neighbours on the machine.
//
// Requires: 1 <= ranks <= cores.size().
std::vector<Share> equal_shares(std::vector<Core> cores, int ranks);

// The same shares in another order: each rank whose device is on a NUMA node (-1: it has none, or nobody knows) gets
// one on that node, as long as there are any. Requires: nodes.size() == shares.size().
std::vector<Share> near_devices(std::vector<Share> shares, std::span<const int> nodes);

}  // namespace col::launch
