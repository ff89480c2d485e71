// A collective of a group as a workload.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <col/group.hpp>

#include "colbench/cell.hpp"
#include "colbench/rank/workload.hpp"

namespace col::colbench {

struct WorkloadSetup {
  Group group = {};
  CellSpec spec = {};
  std::uint64_t seed = 0;
  std::string check_mode = "sample";
  Duration timeout = {};
};

// How many pairs of buffers a cell with CacheState::rotate uses in turn.
std::size_t rotated_sets(const CellSpec& spec, int group_size);

// How many operations follow each other in a window of cadence stream.
int stream_window(std::size_t bytes);

std::unique_ptr<Workload> make_collective_workload(const WorkloadSetup& setup);

}  // namespace col::colbench
