// Describes a job without starting anything: --dry-run, --display map, --print-env.
#pragma once

#include <string>
#include <vector>

#include "common/style.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"
#include "launch/place/placement.hpp"
#include "launch/processes/limits.hpp"

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
  std::string why_not = {};  // Binding::why_not
};

// A heading for each node and a table below it, with one line for each rank. Columns without any value are left out.
std::string render_job_map(const std::vector<MappedNode>& nodes, tools::Style style);

// The map of this node's ranks, and of those that it starts by ssh. If somebody else starts each node's launcher, each
// node shows its own.
std::string map_text(const JobSpec& spec, const Placement& placement, const Rendezvous& rendezvous,
                     const Assignment& assignment, const std::string& host);

// The variables that the launcher and the options give to each rank, one per line: "[3] COL_RANK=3".
std::string environment_text(const JobSpec& spec, const Placement& placement, const Assignment& assignment,
                             const std::string& host);

// The limits of this host that a job needs.
Needs needs_of(const JobSpec& spec, const Rendezvous& meeting);

}  // namespace col::launch
