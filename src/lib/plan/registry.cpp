// The list of built-in algorithms. The first of a collective is the one that serves every request.
#include <array>

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
extern const Algorithm linear, doubling, two_level_leaders, two_level_ordered;
}
}  // namespace plan

namespace {

// The same algorithm for another collective, such as the v-form. Formulas are for equal blocks.
constexpr Algorithm as(Collective collective, Algorithm algorithm) {
  algorithm.collective = collective;
  if (row_of(collective).has_counts()) algorithm.cost = {};
  return algorithm;
}

// The v-form of an algorithm of two levels: leaders carry its short blocks, of which they have to know the counts.
constexpr Algorithm with_neighbours(Collective collective, Algorithm algorithm) {
  algorithm = as(collective, algorithm);
  algorithm.summary =
      "one rank of each node carries the short blocks of all of them, long ones go straight; several nodes";
  algorithm.parameters = "segment";
  algorithm.neighbour_counts = &plan::neighbour_counts;
  return algorithm;
}

const auto& all() {
  static const std::array kAll = {
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
      as(Collective::gatherv, plan::gather::linear),
      plan::gather::binomial,
      as(Collective::gatherv, plan::gather::binomial),
      plan::gather::two_level_leaders,
      with_neighbours(Collective::gatherv, plan::gather::two_level_leaders),
      plan::scatter::linear,
      as(Collective::scatterv, plan::scatter::linear),
      plan::scatter::binomial,
      as(Collective::scatterv, plan::scatter::binomial),
      plan::scatter::two_level_leaders,
      with_neighbours(Collective::scatterv, plan::scatter::two_level_leaders),
      plan::barrier::dissemination,
      plan::barrier::tree,
      plan::barrier::central,
      plan::barrier::two_level_leaders,
      plan::scan::linear,
      plan::exscan::linear,
      plan::scan::doubling,
      plan::exscan::doubling,
      plan::scan::two_level_leaders,
      plan::exscan::two_level_leaders,
      plan::scan::two_level_ordered,
      plan::exscan::two_level_ordered,
      plan::allgather::ring,
      as(Collective::allgatherv, plan::allgather::ring),
      plan::allgather::doubling,
      as(Collective::allgatherv, plan::allgather::doubling),
      plan::allgather::bruck,
      as(Collective::allgatherv, plan::allgather::bruck),
      plan::allgather::direct,
      as(Collective::allgatherv, plan::allgather::direct),
      plan::allgather::neighbor,
      as(Collective::allgatherv, plan::allgather::neighbor),
      plan::allgather::two_level_rails,
      as(Collective::allgatherv, plan::allgather::two_level_rails),
      plan::allgather::two_level_leaders,
      as(Collective::allgatherv, plan::allgather::two_level_leaders),
      plan::reduce_scatter::ring,
      as(Collective::reduce_scatterv, plan::reduce_scatter::ring),
      plan::reduce_scatter::halving,
      as(Collective::reduce_scatterv, plan::reduce_scatter::halving),
      plan::reduce_scatter::pairwise,
      as(Collective::reduce_scatterv, plan::reduce_scatter::pairwise),
      plan::reduce_scatter::direct,
      as(Collective::reduce_scatterv, plan::reduce_scatter::direct),
      plan::reduce_scatter::two_level_rails,
      as(Collective::reduce_scatterv, plan::reduce_scatter::two_level_rails),
      plan::reduce_scatter::two_level_leaders,
      as(Collective::reduce_scatterv, plan::reduce_scatter::two_level_leaders),
      plan::reduce_scatter::two_level_chain,
      as(Collective::reduce_scatterv, plan::reduce_scatter::two_level_chain),
      plan::reduce_scatter::two_level_ordered,
      as(Collective::reduce_scatterv, plan::reduce_scatter::two_level_ordered),
      plan::alltoall::pairwise,
      as(Collective::alltoallv, plan::alltoall::pairwise),
      plan::alltoall::linear,
      as(Collective::alltoallv, plan::alltoall::linear),
      plan::alltoall::bruck,
      as(Collective::alltoallv, plan::alltoall::bruck),
      plan::alltoall::two_level,
      plan::alltoall::two_level_leaders,
      with_neighbours(Collective::alltoallv, plan::alltoall::two_level_leaders),
  };
  return kAll;
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
