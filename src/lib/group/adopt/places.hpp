// On which host each rank of a job is to run, as far as another launcher's variables make that certain: for ranks that
// never come, so that nobody can ask them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "group/adopt/launchers.hpp"

namespace col::group::adopt {

// By rank: the name of its host. Empty if the variables leave a doubt, or say nothing of hosts.
//
//   Slurm        SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE, if ranks go host after host: then SLURM_GTIDS has
//                the ranks that this host gets so, and SLURM_DISTRIBUTION says nothing else. Not in heterogeneous jobs,
//                where the list is in another order than the hosts.
//   Kubernetes   the name of this pod, in which only the number is another one
//
// torchrun, Open MPI and MPICH do not tell a rank the names of other hosts. `own_name` is called only for pods.
std::vector<std::string> hosts_of_ranks(const LaunchedRank& own, const Lookup& lookup,
                                        const std::function<std::string()>& own_name);

// The hosts of a list of Slurm's (meeting_point.hpp), in its order; empty if it is none, or has more than `most`.
std::vector<std::string> hosts_of_list(std::string_view list, std::size_t most);

// "ranks 3, 120-127", or "rank 3 on node0, ranks 120-127 on node15" with `hosts` by rank. Ascending `ranks`.
std::string ranks_on_hosts(const std::vector<int>& ranks, std::span<const std::string> hosts);

}  // namespace col::group::adopt
