// Which node of how many this is: by the options, else by what a scheduler says.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "launch/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"

namespace col::launch {

struct NodePlace {
  int min_nodes = 1;
  int max_nodes = 1;
  int node_rank = -1;    // -1: nobody says
  std::string endpoint;  // empty: nobody says
  std::string id;
};

// Options win. Then, one launcher per node being what they are for:
// - Slurm (srun --ntasks-per-node=1 colrun …): nodes and number from the step, the first node of its list as endpoint;
// - Kubernetes: a Job with indexes says which pod this is, --nnodes how many there are; PET_* of its training operator
//   say all.
// Throws LaunchError (2) when a scheduler that was asked for by name says nothing.
NodePlace find_node(const NodesSpec& nodes, const Lookup& lookup);

// "2" and "1:4": the least number of nodes and the most. Nothing when `text` is no such range.
std::optional<std::pair<int, int>> parse_node_counts(std::string_view text);

// The first host of a list as Slurm writes it: "n01" of "n[01-03,7],m5".
std::string first_host(std::string_view list);

}  // namespace col::launch
