// What kinds of collectives there are.
#pragma once

#include <col/types.hpp>

namespace col::group {

constexpr bool is_reduction(Collective collective) noexcept {
  switch (collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::reduce_scatter:
    case Collective::reduce_scatterv:
    case Collective::scan:
    case Collective::exscan:
      return true;
    default:
      return false;
  }
}

constexpr bool is_rooted(Collective collective) noexcept {
  switch (collective) {
    case Collective::reduce:
    case Collective::broadcast:
    case Collective::gather:
    case Collective::gatherv:
    case Collective::scatter:
    case Collective::scatterv:
      return true;
    default:
      return false;
  }
}

// The root alone has an output.
constexpr bool gathers_to_root(Collective collective) noexcept {
  return collective == Collective::reduce || collective == Collective::gather || collective == Collective::gatherv;
}

// The root alone has an input.
constexpr bool scatters_from_root(Collective collective) noexcept {
  return collective == Collective::scatter || collective == Collective::scatterv;
}

constexpr bool is_v_form(Collective collective) noexcept {
  switch (collective) {
    case Collective::allgatherv:
    case Collective::reduce_scatterv:
    case Collective::gatherv:
    case Collective::scatterv:
    case Collective::alltoallv:
      return true;
    default:
      return false;
  }
}

// The ranks exchange blocks whose counts only the two that exchange one know.
constexpr bool has_private_counts(Collective collective) noexcept {
  return collective == Collective::alltoallv || collective == Collective::gatherv || collective == Collective::scatterv;
}

}  // namespace col::group
