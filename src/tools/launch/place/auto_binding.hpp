// --bind-to auto: whether the ranks of this node are bound, and to which cores (docs/decisions/0020-binding.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/place/placement.hpp"
#include "launch/place/topology.hpp"

namespace col::launch {

// What this process may use, and what is there: allowed_cpus(), offered_cpus(), cpu_quota().
struct Allowance {
  std::vector<int> allowed;
  std::vector<int> offered = {};
  std::optional<double> quota = {};
};

// Why no rank is to be bound, whatever the machine looks like: there is one rank, there are more than processors,
// somebody has bound this process, or a control group allows less time than there are processors. Empty: none of these.
std::string why_not_bound(const Allowance& allowance, int local_ranks);

struct RankNeeds {
  int ranks = 1;                // of this node; at least 1
  int threads = 1;              // of the rank that has the most
  std::vector<int> nodes = {};  // NUMA node of each rank's devices, -1 where it is unknown; empty: of all
};

using Share = std::vector<Core>;  // some of a node's cores, by NUMA node, cache and processor

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

// Equal shares of the cores whose locks nobody else holds; afterwards `locks` holds those that are used. Nobody is
// bound if the ranks' threads do not fit into their shares: then Binding::why_not says so.
Binding bind_to_shares(const Topology& topology, const RankNeeds& needs, CoreLocks& locks);

}  // namespace col::launch
