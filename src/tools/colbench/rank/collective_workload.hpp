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

// The algorithm that runs such a collective; empty if it is not a collective. A rank may call it alone.
std::string algorithm_of(Group& group, const CellSpec& spec);

// How many pairs of buffers a cell with CacheState::rotate uses in turn. Together they are larger than the processor's
// caches, and larger than `cache_bytes`, the cache of the GPU that they are on; but there are at most 4096 pairs.
std::size_t rotated_sets(const CellSpec& spec, int group_size, std::size_t cache_bytes = 0);

// How many operations are in one window of cadence stream.
int stream_window(std::size_t bytes);

std::unique_ptr<Workload> make_collective_workload(const WorkloadSetup& setup);

}  // namespace col::colbench
