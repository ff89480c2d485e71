// The places of the ranks of a simulated job.
#pragma once

#include <string>
#include <vector>

namespace col::colbench {

inline constexpr int kMostSimulatedRanks = 65'536;

struct Topology {
  int ranks = 0;
  int nodes = 1;  // 1: all ranks have the same distance from each other
  std::vector<int> node_of_rank() const;
  std::string text() const;  // "4096 ranks, 512 nodes of 8"
};

// "flat", "nodes:512x8" (512 nodes of 8 ranks). `ranks` is 0 if only this text gives their number. Consecutive ranks
// are on the same node. Throws UsageError.
Topology parse_topology(const std::string& text, int ranks);

}  // namespace col::colbench
