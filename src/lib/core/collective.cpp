#include <array>
#include <cstddef>

#include <col/types.hpp>

#include "core/names.hpp"

namespace col {
namespace {

constexpr std::array<std::string_view, kCollectiveCount> kNames = {
    "allreduce",       "reduce", "broadcast", "allgather", "allgatherv", "reduce_scatter",
    "reduce_scatterv", "gather", "gatherv",   "scatter",   "scatterv",   "alltoall",
    "alltoallv",       "scan",   "exscan",    "barrier",   "send",       "recv"};

}  // namespace

std::string_view to_string(Collective collective) noexcept {
  return core::name_at(kNames, static_cast<std::size_t>(collective));
}

Collective collective_from_string(std::string_view name) {
  return core::value_of<Collective>(kNames, name, "collective");
}

}  // namespace col
