// What the formulas for ranks on several nodes (CostFormula::on_nodes) are made of: a clock for each rank.
//
// Two kinds of links make formulas of letters long: who waits for whom depends on the layout. So a formula says which
// ranks exchange how many bytes, step after step, and the clocks add it up. This takes a handful of operations a
// message and knows no plans, rounds or events; where all steps are alike it needs no clocks, only the slowest link.
//
// It is exact where no rank has two messages at once in one direction. Ranks that meet at the port of their node, one
// for all of them, would wait in an order that only simulate() knows: then there is no result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <col/plan.hpp>

#include "plan/cost_terms.hpp"
#include "plan/nodes.hpp"

namespace col::plan {

class NodeClocks {
 public:
  // `bytes` and `parameters`: as a formula for one node has them.
  NodeClocks(const PlanProblem& problem, const PlanParameters& parameters, const CostModel& model, double bytes);

  int size() const noexcept { return static_cast<int>(clocks_.size()); }
  double bytes() const noexcept { return bytes_; }
  double block() const noexcept { return bytes_ / size(); }  // of one rank
  int root() const noexcept { return root_; }
  const Nodes& nodes() const noexcept { return nodes_; }
  std::span<const int> all() const noexcept { return all_; }
  // The lowest ranks of the nodes, and the blocks of all ranks of each node.
  const std::vector<int>& leaders() const noexcept { return leaders_; }
  std::vector<double> node_bytes() const;
  std::vector<double> blocks() const { return std::vector<double>(all_.size(), block()); }
  // The terms of a formula for one node, with the slowest link between a rank and the next one: in a ring, all ranks
  // soon wait for that one.
  CostTerms terms_of_ring(double message_bytes);
  // The same for a ring of nodes, on which ranks of equal number have one each.
  CostTerms terms_between_nodes() const { return terms(model_.inter); }
  CostTerms terms_in_node() const { return terms(model_.intra); }

  // ---- Steps ----

  void send(int from, int to, double bytes);
  // `adds`: both add up what arrives, even if their own message is still on its way.
  void exchange(int a, int b, double bytes_of_a, double bytes_of_b, bool adds = false);
  // Number i of `ranks` sends bytes_of(i) to number i + by, all at the same time. Then number i adds up added_by(i).
  using Bytes = std::function<double(int)>;
  void shift(
      std::span<const int> ranks, int by, const Bytes& bytes_of, const Bytes& added_by = [](int) { return 0.0; });
  void add(int rank, double bytes) { clock(rank) += bytes * model_.gamma; }
  // From here on, a rank has several messages at once in one direction: they take turns, unless some go through the
  // port of its node, and others do not.
  void take_turns() { known_ = known_ && !model_.nic_shared; }
  void give_up() noexcept { known_ = false; }

  // ---- Algorithms that others are made of; number i of `ranks` is the rank that the algorithm calls i ----

  void dissemination(std::span<const int> ranks);
  void tree_up(std::span<const int> ranks);
  void tree_down(std::span<const int> ranks);
  // Minimum spanning trees, with number `root` as root.
  void mst_up(std::span<const int> ranks, int root);
  void mst_down(std::span<const int> ranks, int root);
  // Allreduce by exchanges at doubling distances.
  void doubling(std::span<const int> ranks, bool half_duplex);
  // Number i has a block of blocks[i] bytes, or gets it.
  void bruck(std::span<const int> ranks, const std::vector<double>& blocks);
  void halving(std::span<const int> ranks, const std::vector<double>& blocks);

  // When the last rank ends.
  double seconds() const noexcept { return *std::max_element(clocks_.begin(), clocks_.end()); }
  // Whether this, or what a formula makes of terms_of_ring(), is true.
  bool is_known() const noexcept { return known_; }

 private:
  double& clock(int rank) noexcept { return clocks_[static_cast<std::size_t>(rank)]; }
  CostTerms terms(const CostModel::Link& link) const {
    return {.p = size(), .n = bytes_, .a = link.alpha, .b = link.beta, .g = model_.gamma, .parameters = parameters_};
  }
  double message(int from, int to, double bytes);
  void claim(std::vector<int>& users, int rank);
  void mst(std::span<const int> ranks, int first, int last, int root, bool up);

  CostModel model_;
  PlanParameters parameters_;
  double bytes_;
  int root_;
  Nodes nodes_;
  std::vector<int> all_, leaders_;
  std::vector<double> clocks_;
  std::vector<int> senders_, receivers_;  // of each node, the rank that uses its port; -1: none has yet
  bool known_ = true;
};

}  // namespace col::plan
