// The map of a job before it starts, for --display map and --dry-run.
#pragma once

#include <string>
#include <vector>

#include "common/style.hpp"

namespace col::launch {

struct MappedRank {
  int rank = 0;  // global
  int local_rank = 0;
  std::vector<std::string> command;
  std::vector<int> cpus = {};          // ascending; empty: not bound
  std::vector<std::string> gpus = {};  // UUIDs; empty: not changed
  std::string output = "console";      // where stdout and stderr go, in words
};

struct MappedNode {
  int node_rank = 0;
  std::string host;
  std::vector<MappedRank> ranks = {};
};

struct JobMap {
  std::vector<MappedNode> nodes;
};

// A heading for each node and a table below it, with one line for each rank. Columns without any value are left out.
std::string render_job_map(const JobMap& map, tools::Style style);

}  // namespace col::launch
