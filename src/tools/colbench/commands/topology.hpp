// Where the ranks of a simulated job are.
#pragma once

#include <string>
#include <vector>

namespace col::colbench {

inline constexpr int kMostSimulatedRanks = 65'536;

struct Topology {
  int ranks = 0;
  int nodes = 1;  // 1: every rank is as far from every other
  std::vector<int> node_of_rank() const;
  std::string text() const;  // "4096 ranks, 512 nodes of 8"
};

// "flat", "nodes:512x8" (512 nodes of 8 ranks). `ranks` is 0 when they are only said here. Ranks follow each other
// within a node. Throws UsageError.
Topology parse_topology(const std::string& text, int ranks);

}  // namespace col::colbench
