// Times, speeds, sizes and places of ranks, as command lines and tables write them. All functions are pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace col::colbench {

// "5us", "1.5ms", "20ns", "2s", "0": seconds. Nothing for other text.
std::optional<double> parse_time(std::string_view text);
// "25GB/s", "200Gbit/s", "12.5GiB/s", "100Gbps": bytes per second. Nothing for other text, and for speeds that are not
// above 0. Powers of 1000, with an i of 1024.
std::optional<double> parse_speed(std::string_view text);

// The same for the value of an option; throw UsageError.
double time_option(const std::string& name, const std::string& text);
double speed_option(const std::string& name, const std::string& text);

// "25 GB/s", "1.25 GB/s", "340 MB/s".
std::string speed_text(double bytes_per_second);
// A roughly known size, in three digits: "12.2K", "3.05M".
std::string rough_size_text(std::size_t bytes);
// "at all sizes", "up to 12K", "12K to 3M", "above 3M"; nothing: no end.
std::string range_text(std::optional<std::size_t> from, std::optional<std::size_t> to);

inline constexpr int kMostSimulatedRanks = 65'536;

// The places of the ranks of a simulated job.
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
