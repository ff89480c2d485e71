// The list of built-in algorithms. The first of a collective is the one that serves every request.
#include <optional>
#include <utility>
#include <vector>

#include <col/plan.hpp>

namespace col {

// Each is defined in a file of its own, in the folder of its collective.
namespace plan {
extern const NeighbourCounts neighbour_counts;
namespace allreduce {
extern const Algorithm mst, bde, bde_half, ring, ring_pipelined, rabenseifner, direct, one_shot, double_tree,
    two_level_rails, two_level_leaders, two_level_chain, two_level_ordered, ps_central, ps_sharded;
}
namespace broadcast {
extern const Algorithm linear, mst, knomial, chain_pipelined, scatter_allgather, two_level_rails, two_level_leaders;
}
namespace reduce {
extern const Algorithm linear, mst, rabenseifner, chain_pipelined, two_level_rails, two_level_leaders, two_level_chain,
    two_level_ordered;
}
namespace allgather {
extern const Algorithm ring, doubling, bruck, direct, neighbor, two_level_rails, two_level_leaders;
}
namespace reduce_scatter {
extern const Algorithm ring, halving, pairwise, direct, two_level_rails, two_level_leaders, two_level_chain,
    two_level_ordered;
}
namespace gather {
extern const Algorithm linear, binomial, two_level_leaders;
}
namespace scatter {
extern const Algorithm linear, binomial, two_level_leaders;
}
namespace alltoall {
extern const Algorithm linear, pairwise, bruck, two_level, two_level_leaders;
}
namespace barrier {
extern const Algorithm dissemination, tree, central, two_level_leaders;
}
namespace scan {
extern const Algorithm linear, doubling, two_level_leaders, two_level_ordered;
}
namespace exscan {
extern const Algorithm linear, doubling;
}
}  // namespace plan

namespace {

Algorithm as(Collective collective, Algorithm algorithm) {
  algorithm.collective = collective;
  return algorithm;
}

// The v-form of an algorithm of equal blocks, if there is one. Formulas are for equal blocks.
std::optional<Algorithm> v_form_of(const Algorithm& algorithm) {
  const auto next = static_cast<Collective>(static_cast<int>(algorithm.collective) + 1);  // where v-forms stand
  if (!row_of(next).has_counts() || algorithm.build == plan::alltoall::two_level.build) return std::nullopt;
  Algorithm v_form = as(next, algorithm);
  v_form.cost = {};
  if (v_form.name != "two_level_leaders" || !row_of(next).has_private_counts()) return v_form;
  v_form.summary =
      "one rank of each node carries the short blocks of all of them, long ones go straight; several nodes";
  v_form.parameters = "segment";
  v_form.neighbour_counts = &plan::neighbour_counts;
  return v_form;
}

std::vector<Algorithm> with_v_forms(const std::vector<Algorithm>& algorithms) {
  std::vector<Algorithm> all;
  for (const Algorithm& algorithm : algorithms) {
    all.push_back(algorithm);
    if (auto v_form = v_form_of(algorithm)) all.push_back(*std::move(v_form));
  }
  return all;
}

const std::vector<Algorithm>& all() {
  // Never destroyed: plans may be made until the end of the process.
  static const auto& algorithms = *new std::vector(with_v_forms({
      plan::allreduce::ring,
      plan::allreduce::mst,
      plan::allreduce::bde,
      plan::allreduce::bde_half,
      plan::allreduce::ring_pipelined,
      plan::allreduce::rabenseifner,
      plan::allreduce::direct,
      plan::allreduce::one_shot,
      plan::allreduce::double_tree,
      plan::allreduce::two_level_rails,
      plan::allreduce::two_level_leaders,
      plan::allreduce::two_level_chain,
      plan::allreduce::two_level_ordered,
      plan::allreduce::ps_central,
      plan::allreduce::ps_sharded,
      plan::broadcast::mst,
      plan::reduce::mst,
      plan::broadcast::linear,
      plan::broadcast::knomial,
      plan::broadcast::chain_pipelined,
      plan::broadcast::scatter_allgather,
      plan::broadcast::two_level_rails,
      plan::broadcast::two_level_leaders,
      plan::reduce::linear,
      plan::reduce::rabenseifner,
      plan::reduce::chain_pipelined,
      plan::reduce::two_level_rails,
      plan::reduce::two_level_leaders,
      plan::reduce::two_level_chain,
      plan::reduce::two_level_ordered,
      plan::gather::linear,
      plan::gather::binomial,
      plan::gather::two_level_leaders,
      plan::scatter::linear,
      plan::scatter::binomial,
      plan::scatter::two_level_leaders,
      plan::barrier::dissemination,
      plan::barrier::tree,
      plan::barrier::central,
      plan::barrier::two_level_leaders,
      plan::scan::linear,
      plan::exscan::linear,
      plan::scan::doubling,
      plan::exscan::doubling,
      plan::scan::two_level_leaders,
      as(Collective::exscan, plan::scan::two_level_leaders),
      plan::scan::two_level_ordered,
      as(Collective::exscan, plan::scan::two_level_ordered),
      plan::allgather::ring,
      plan::allgather::doubling,
      plan::allgather::bruck,
      plan::allgather::direct,
      plan::allgather::neighbor,
      plan::allgather::two_level_rails,
      plan::allgather::two_level_leaders,
      plan::reduce_scatter::ring,
      plan::reduce_scatter::halving,
      plan::reduce_scatter::pairwise,
      plan::reduce_scatter::direct,
      plan::reduce_scatter::two_level_rails,
      plan::reduce_scatter::two_level_leaders,
      plan::reduce_scatter::two_level_chain,
      plan::reduce_scatter::two_level_ordered,
      plan::alltoall::pairwise,
      plan::alltoall::linear,
      plan::alltoall::bruck,
      plan::alltoall::two_level,
      plan::alltoall::two_level_leaders,
  }));
  return algorithms;
}

}  // namespace

std::span<const Algorithm> algorithms() noexcept {
  return all();
}

const Algorithm* find_algorithm(Collective collective, std::string_view name) noexcept {
  for (const Algorithm& algorithm : all()) {
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

}  // namespace col
