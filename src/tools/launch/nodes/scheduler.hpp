// Which node this is, and how many there are: from the options, else from a scheduler.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "launch/job/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"

namespace col::launch {

struct NodePlace {
  int min_nodes = 1;
  int max_nodes = 1;
  int node_rank = -1;    // -1: unknown
  std::string endpoint;  // empty: unknown
  std::string id;
};

// Options win. After them, for one launcher on each node:
// - Slurm (srun --ntasks-per-node=1 colrun …): the step gives the nodes and the number, and the first node of its list
//   is the endpoint
// - Kubernetes: an Indexed Job says which pod this is, and --nnodes says how many there are; PET_* of its training
//   operator say everything
//
// Throws LaunchError (2) if a scheduler that was requested by name says nothing.
NodePlace find_node(const NodesSpec& nodes, const Lookup& lookup);

// "2" and "1:4": the least and the largest number of nodes. Nothing if `text` is not such a range.
std::optional<std::pair<int, int>> parse_node_counts(std::string_view text);

// The first host of a list in Slurm's notation: "n01" for "n[01-03,7],m5".
std::string first_host(std::string_view list);

}  // namespace col::launch
