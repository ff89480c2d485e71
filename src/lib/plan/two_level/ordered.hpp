// Short vectors over several nodes, in rank order, whatever ranks a node has: leaders exchange inputs and not sums.
//
// The sums of two nodes can be put together in rank order only if each has neighbouring ranks. Inputs can always.
#pragma once

#include <cstddef>

#include <col/plan.hpp>

#include "plan/two_level/leaders.hpp"

namespace col::plan {

// The strict left fold of what ranks 0 to size-1 contribute: of(rank). `sum` holds it while it is incomplete.
template <class Contribution>
void left_fold(int size, Contribution of, Slice sum, Slice result, bool widens, Round& round) {
  Slice total = of(0);
  for (int rank = 1; rank < size; ++rank) {
    const Slice to = rank == size - 1 && !widens ? result : sum;
    round.reduce(to, total, of(rank));
    total = to;
  }
  round.convert(result, total);
}

// The inputs of all ranks, each a vector, on the leaders of all nodes.
class Inputs {
 public:
  // `everywhere`: every rank has memory for them.
  Inputs(const PlanRequest& request, const Leaders& leaders, bool everywhere, Composition& plan)
      : count_(request.count), size_(static_cast<std::size_t>(request.size)), place_(size_) {
    const std::vector<int> order = leaders.nodes().by_node();
    for (std::size_t i = 0; i < size_; ++i) place_[static_cast<std::size_t>(order[i])] = i;
    all_ = plan.take(raw_buffer(request), everywhere || leaders.leads() ? size_ * count_ : 0);
    collect(request, leaders, plan);
  }

  Slice all() const noexcept { return all_; }
  Slice of(int rank) const { return all_.part(place_[static_cast<std::size_t>(rank)] * count_, count_); }

 private:
  void collect(const PlanRequest& request, const Leaders& leaders, Composition& plan) {
    const bool is_wide = all_.buffer == Buffer::wide;
    const BlocksByNode blocks(leaders.nodes(), Blocks::equal(count_, size_));
    const Slice of_node = leaders.leads() ? blocks.of_node(all_, leaders.node()) : Slice{};
    Place here = leaders.place_in_node({Buffer::input, 0, request.count}, of_node);
    here.is_wide = is_wide;
    plan.add("linear", leaders.in_node(Collective::gather, count_), here);
    if (!leaders.leads()) return;
    PlanRequest exchange = leaders.between_nodes(Collective::allgatherv, of_node.count);
    plan.keep(blocks.of_nodes(), exchange.out_counts, exchange.out_displacements);
    exchange.in_place = true;
    Place across = leaders.place_between_nodes(of_node, all_);
    across.is_wide = is_wide;
    plan.add("bruck", exchange, across);
  }

  std::size_t count_, size_;
  std::vector<std::size_t> place_;  // of a rank's input among all
  Slice all_;
};

}  // namespace col::plan
