#include "colbench/commands/topology.hpp"

#include <string_view>

#include <fmt/format.h>

#include "common/command_line.hpp"
#include "common/numbers.hpp"

namespace col::colbench {
namespace {

constexpr std::string_view kNodes = "nodes:";

[[noreturn]] void refuse(const std::string& why) {
  throw tools::UsageError(why);
}

}  // namespace

std::vector<int> Topology::node_of_rank() const {
  std::vector<int> node(static_cast<std::size_t>(ranks), 0);
  for (int r = 0; r < ranks; ++r) node[static_cast<std::size_t>(r)] = r / (ranks / nodes);
  return node;
}

std::string Topology::text() const {
  return nodes == 1 ? fmt::format("{} ranks", ranks)
                    : fmt::format("{} ranks, {} nodes of {}", ranks, nodes, ranks / nodes);
}

Topology parse_topology(const std::string& text, int ranks) {
  if (text == "flat") {
    if (ranks == 0) refuse("how many ranks? write --ranks 4096, or --topology nodes:512x8");
    return {ranks, 1};
  }
  const std::string_view whole = text;
  const std::size_t times = whole.find('x');
  if (!whole.starts_with(kNodes) || times == std::string_view::npos)
    refuse(fmt::format("--topology should be flat, or nodes:512x8 (512 nodes of 8 ranks), not '{}'", text));
  const auto nodes =
      tools::parse_whole_number(whole.substr(kNodes.size(), times - kNodes.size()), 1, kMostSimulatedRanks);
  const auto per_node = tools::parse_whole_number(whole.substr(times + 1), 1, kMostSimulatedRanks);
  if (!nodes || !per_node)
    refuse(fmt::format("--topology {}: should be nodes:512x8, with numbers from 1 to {}", text, kMostSimulatedRanks));
  const long long all = static_cast<long long>(*nodes) * *per_node;
  if (all > kMostSimulatedRanks)
    refuse(fmt::format("--topology {} has {} ranks; {} can be simulated", text, all, kMostSimulatedRanks));
  if (ranks != 0 && ranks != all)
    refuse(
        fmt::format("--topology {} has {} ranks, not the {} of --ranks; leave one of the two out", text, all, ranks));
  return {static_cast<int>(all), *nodes};
}

}  // namespace col::colbench
