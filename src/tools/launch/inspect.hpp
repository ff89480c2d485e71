// Describes a job without starting anything: --dry-run, --display map, --print-env.
#pragma once

#include <string>

#include "launch/job/assignment.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"
#include "launch/place/placement.hpp"

namespace col::launch {

// The map of this node's ranks, and of those that it starts by ssh. If somebody else starts each node's launcher, each
// node shows its own.
std::string map_text(const JobSpec& spec, const Placement& placement, const Rendezvous& rendezvous,
                     const Assignment& assignment, const std::string& host);

// The variables that the launcher and the options give to each rank, one per line: "[3] COL_RANK=3".
std::string environment_text(const JobSpec& spec, const Placement& placement, const Assignment& assignment,
                             const std::string& host);

}  // namespace col::launch
