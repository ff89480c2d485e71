// The times of messages between all pairs of ranks, as a map. All functions are pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colbench/cell/results.hpp"
#include "colbench/p2p/outliers.hpp"
#include "common/report.hpp"

namespace col::colbench {

// Messages up to this size measure latency; larger ones measure bandwidth.
inline constexpr std::size_t kLargestLatencySize = 4096;

struct HeatMap {
  int ranks = 0;
  std::size_t bytes = 0;
  std::vector<PairTime> pairs = {};  // only measured pairs

  bool is_latency() const { return bytes <= kLargestLatencySize; }
  // Nothing if the pair was not measured.
  std::optional<double> seconds(int a, int b) const;
};

// The map of the valid cells of that size.
HeatMap heat_map_of(std::span<const Cell> cells, int ranks, std::size_t bytes);

// How dark a pair is, by its time over the median: 0 up to 1.1 times, then up to 1.2, 1.5 and 2 times, and 4 above.
inline constexpr int kShades = 5;
int shade_of(double ratio);

// "8-byte messages", "1M messages".
std::string messages_text(std::size_t bytes);
// "latency of 8-byte messages, in us", "bandwidth of 1M messages, in GB/s".
std::string title_of(const HeatMap& map);
// The pair's value in the map's unit, three digits: "1.23"; "-" if it was not measured.
std::string value_text(const HeatMap& map, int a, int b);
// The median of all pairs' times; 0 if there are none.
double median_seconds(const HeatMap& map);

// A row and a column for each rank; marks before the numbers say how slow a pair is.
tools::Table heat_map_table(const HeatMap& map, tools::Style style);
// Whole lines; of numbers for which `style.columns` have no room, the marks alone.
std::string heat_map_text(const HeatMap& map, tools::Style style);

}  // namespace col::colbench
