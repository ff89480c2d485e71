// The list of built-in algorithms. The first of a collective is the one that serves every request.
#include <array>

#include <col/plan.hpp>

#include "plan/builders.hpp"

namespace col {
namespace {

// The same algorithm for the v-form of its collective.
constexpr Algorithm as(Collective collective, Algorithm algorithm) {
  algorithm.collective = collective;
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
      plan::allreduce::ps_central,
      plan::allreduce::ps_sharded,
      plan::broadcast::mst,
      plan::reduce::mst,
      plan::broadcast::linear,
      plan::broadcast::knomial,
      plan::broadcast::chain_pipelined,
      plan::broadcast::scatter_allgather,
      plan::reduce::linear,
      plan::reduce::rabenseifner,
      plan::reduce::chain_pipelined,
      plan::gather::linear,
      as(Collective::gatherv, plan::gather::linear),
      plan::gather::binomial,
      as(Collective::gatherv, plan::gather::binomial),
      plan::scatter::linear,
      as(Collective::scatterv, plan::scatter::linear),
      plan::scatter::binomial,
      as(Collective::scatterv, plan::scatter::binomial),
      plan::barrier::dissemination,
      plan::barrier::tree,
      plan::barrier::central,
      plan::scan::linear,
      plan::exscan::linear,
      plan::scan::doubling,
      plan::exscan::doubling,
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
      plan::reduce_scatter::ring,
      as(Collective::reduce_scatterv, plan::reduce_scatter::ring),
      plan::reduce_scatter::halving,
      as(Collective::reduce_scatterv, plan::reduce_scatter::halving),
      plan::reduce_scatter::pairwise,
      as(Collective::reduce_scatterv, plan::reduce_scatter::pairwise),
      plan::reduce_scatter::direct,
      as(Collective::reduce_scatterv, plan::reduce_scatter::direct),
      plan::alltoall::pairwise,
      as(Collective::alltoallv, plan::alltoall::pairwise),
      plan::alltoall::linear,
      as(Collective::alltoallv, plan::alltoall::linear),
      plan::alltoall::bruck,
      as(Collective::alltoallv, plan::alltoall::bruck),
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
