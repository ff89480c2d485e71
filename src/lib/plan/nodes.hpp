// The nodes of ranks, for algorithms of two levels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

namespace col::plan {

// Nodes are numbered in the order of their lowest ranks. The ranks of a node are in order, wherever they are in the
// group.
class Nodes {
 public:
  explicit Nodes(const PlanRequest& request) {
    std::map<int, int> numbers;
    node_of_.reserve(static_cast<std::size_t>(request.size));
    local_of_.reserve(static_cast<std::size_t>(request.size));
    int node = 0, last = 0;
    for (int rank = 0; rank < request.size; ++rank) {
      const int name = request.node_of_rank.empty() ? 0 : request.node_of_rank[static_cast<std::size_t>(rank)];
      // Mostly that of the rank before it: thousands of ranks each look at thousands.
      if (rank == 0 || name != last) node = numbers.emplace(name, count()).first->second;
      last = name;
      if (node == count()) ranks_.emplace_back();
      node_of_.push_back(node);
      local_of_.push_back(static_cast<int>(ranks(node).size()));
      ranks_[static_cast<std::size_t>(node)].push_back(rank);
    }
  }

  int count() const noexcept { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks(int node) const noexcept { return ranks_[static_cast<std::size_t>(node)]; }
  int size(int node) const noexcept { return static_cast<int>(ranks(node).size()); }
  int rank(int node, int local) const noexcept { return ranks(node)[static_cast<std::size_t>(local)]; }
  int node_of(int rank) const noexcept { return node_of_[static_cast<std::size_t>(rank)]; }
  // Its number among the ranks of its node.
  int local_of(int rank) const noexcept { return local_of_[static_cast<std::size_t>(rank)]; }
  int most_ranks() const noexcept {
    std::size_t most = 0;
    for (const std::vector<int>& ranks : ranks_) most = std::max(most, ranks.size());
    return static_cast<int>(most);
  }
  // All ranks, node by node.
  std::vector<int> by_node() const {
    std::vector<int> order;
    for (const std::vector<int>& ranks : ranks_) order.insert(order.end(), ranks.begin(), ranks.end());
    return order;
  }

 private:
  std::vector<std::vector<int>> ranks_;
  std::vector<int> node_of_, local_of_;
};

// Why no algorithm of two levels serves the request; nothing if one does.
inline std::optional<std::string> refuse_one_node(const PlanRequest& request, std::string_view instead) {
  const auto nodes = request.node_of_rank;
  if (std::adjacent_find(nodes.begin(), nodes.end(), std::not_equal_to<>()) != nodes.end()) return std::nullopt;
  return fmt::format("all ranks are on one node; use {}", instead);
}

// Nor any that passes sums from node to node in rank order. `on_one`: what to use where all ranks are on one node.
inline std::optional<std::string> refuse_dealt_nodes(const PlanRequest& request, std::string_view on_one,
                                                     std::string_view instead) {
  if (auto why = refuse_one_node(request, on_one)) return why;
  const Nodes nodes(request);
  for (int node = 0; node < nodes.count(); ++node) {
    const std::vector<int>& ranks = nodes.ranks(node);
    if (ranks.back() - ranks.front() + 1 == nodes.size(node)) continue;
    const auto gap = std::adjacent_find(ranks.begin(), ranks.end(), [](int a, int b) { return b != a + 1; });
    return fmt::format(
        "the ranks of a node are not neighbours: rank {} is on the node of rank {}, and rank {} is not; use {}",
        ranks.back(), ranks.front(), *gap + 1, instead);
  }
  return std::nullopt;
}

}  // namespace col::plan
