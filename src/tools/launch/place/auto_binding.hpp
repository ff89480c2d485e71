// --bind-to auto: whether the ranks of this node are bound, and to which cores (docs/decisions/0020-binding.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/place/core_locks.hpp"
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

// Equal shares of the cores whose locks nobody else holds; afterwards `locks` holds those that are used. Nobody is
// bound if the ranks' threads do not fit into their shares: then Binding::why_not says so.
Binding bind_to_shares(const Topology& topology, const RankNeeds& needs, CoreLocks& locks);

}  // namespace col::launch
