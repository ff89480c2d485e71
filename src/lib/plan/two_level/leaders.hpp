// Short vectors over several nodes: one rank of each node, its leader, talks to those of the others.
//
// Such an algorithm is a composition of algorithms of one level: one for the ranks of a node, then one for the leaders,
// then another one for the ranks of a node. Each part is a function here.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <col/plan.hpp>

#include "plan/nodes.hpp"
#include "plan/two_level/composition.hpp"

namespace col::plan {

// The lowest rank of a node leads it, except that the root leads its own.
class Leaders {
 public:
  explicit Leaders(const PlanRequest& request) : request_(request), nodes_(request) {
    node_ = nodes_.node_of(request.rank);
    for (int node = 0; node < nodes_.count(); ++node) ranks_.push_back(nodes_.rank(node, 0));
    if (row_of(request.collective).rooted) ranks_[static_cast<std::size_t>(root_node())] = request.root;
  }

  const Nodes& nodes() const noexcept { return nodes_; }
  int node() const noexcept { return node_; }
  int root_node() const noexcept { return nodes_.node_of(request_.root); }
  int of_node(int node) const noexcept { return ranks_[static_cast<std::size_t>(node)]; }
  int leader() const noexcept { return of_node(node_); }
  bool leads() const noexcept { return leader() == request_.rank; }
  int local_size() const noexcept { return nodes_.size(node_); }

  // Requests for a part. Partial results, which are the input between nodes, have the wide type.
  PlanRequest in_node(Collective collective, std::size_t count) const {
    return {.collective = collective,
            .rank = nodes_.local_of(request_.rank),
            .size = local_size(),
            .root = nodes_.local_of(leader()),
            .count = count,
            .widens = request_.widens,
            .wide_input = request_.wide_input};
  }
  PlanRequest between_nodes(Collective collective, std::size_t count) const {
    return {.collective = collective,
            .rank = node_,
            .size = nodes_.count(),
            .root = root_node(),
            .count = count,
            .widens = request_.widens,
            .wide_input = request_.widens};
  }
  Place place_in_node(Slice input, Slice output, bool is_partial = false) const {
    return {nodes_.ranks(node_), input, output, is_partial};
  }
  Place place_between_nodes(Slice input, Slice output, bool is_partial = false) const {
    return {ranks_, input, output, is_partial};
  }

  // ---- Parts ----

  // The leader gets the sum of its node. Returns where.
  Slice fold_in_node(Slice input, Composition& plan) const {
    const Slice sum = plan.take(Buffer::wide, leads() ? input.count : 0);
    plan.add("mst", in_node(Collective::reduce, input.count), place_in_node(input, sum, true));
    return sum;
  }
  // All ranks of the node get what its leader has.
  void release_in_node(Slice data, Composition& plan) const {
    plan.add("mst", in_node(Collective::broadcast, data.count), place_in_node({}, data));
  }

 private:
  PlanRequest request_;
  Nodes nodes_;
  int node_ = 0;
  std::vector<int> ranks_;
};

// The blocks of all ranks node by node, in one run.
class BlocksByNode {
 public:
  BlocksByNode(const Nodes& nodes, const Blocks& blocks)
      : blocks_(blocks), order_(nodes.by_node()), all_(of_ranks(order_)) {
    of_nodes_ = Packed(static_cast<std::size_t>(nodes.count()),
                       [&](std::size_t node) { return of_ranks(nodes.ranks(static_cast<int>(node))).total(); });
  }

  std::size_t total() const noexcept { return all_.total(); }
  // The blocks of each node as one; those of some ranks.
  const Packed& of_nodes() const noexcept { return of_nodes_; }
  Packed of_ranks(const std::vector<int>& ranks) const {
    return {ranks.size(), [&](std::size_t i) { return blocks_.count(static_cast<std::size_t>(ranks[i])); }};
  }
  // The blocks of a node, if all are in `region`.
  Slice of_node(const Slice& region, int node) const noexcept {
    return of_nodes_.range(region, static_cast<std::size_t>(node), static_cast<std::size_t>(node) + 1);
  }
  // Between that order in `region` and the places of the blocks in `buffer`. `except`: the block of this rank is there
  // already (-1: none is).
  void pack(const Slice& region, Buffer buffer, Round& round) const {
    for (std::size_t i = 0; i < order_.size(); ++i)
      round.copy(all_.range(region, i, i + 1), blocks_.slice(buffer, order_[i]));
  }
  void unpack(const Slice& region, Buffer buffer, int except, Round& round) const {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] != except) round.copy(blocks_.slice(buffer, order_[i]), all_.range(region, i, i + 1));
    }
  }

 private:
  Blocks blocks_;
  std::vector<int> order_;
  Packed all_, of_nodes_;
};

}  // namespace col::plan
