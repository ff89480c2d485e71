// Time as bandwidth.
#include <algorithm>
#include <cstdio>

#include "colbench/results.hpp"

namespace col::colbench {
namespace {

// What nccl-tests multiplies the algorithm bandwidth by, so that the result can be compared with the speed of a link
// whatever the number of ranks: the bytes that the busiest link of one rank must carry, over `bytes`. It has no scan:
// there each rank's vector must leave it once, as in reduce.
double bus_factor(Operation operation, int ranks) {
  const auto p = static_cast<double>(std::max(ranks, 1));
  switch (operation) {
    case Operation::allreduce:
    case Operation::store:
      return 2 * (p - 1) / p;
    case Operation::allgather:
    case Operation::allgatherv:
    case Operation::reduce_scatter:
    case Operation::reduce_scatterv:
    case Operation::gather:
    case Operation::gatherv:
    case Operation::scatter:
    case Operation::scatterv:
    case Operation::alltoall:
    case Operation::alltoallv:
      return (p - 1) / p;
    case Operation::reduce:
    case Operation::broadcast:
    case Operation::scan:
    case Operation::exscan:
    case Operation::barrier:  // of no bytes
    case Operation::pingpong:
    case Operation::oneway:
    case Operation::bidirectional:  // of one direction
      return 1;
  }
  return 1;
}

}  // namespace

double algorithm_bandwidth(const CellSpec& spec, double seconds) {
  return seconds > 0 ? static_cast<double>(spec.bytes) / seconds : 0;
}

double bus_bandwidth(const CellSpec& spec, int group_size, double seconds) {
  return algorithm_bandwidth(spec, seconds) * bus_factor(spec.operation, group_size);
}

int group_size_of(const CellSpec& spec) {
  if (is_message(spec.operation) || spec.groups == "pairs") return std::min(2, spec.ranks);
  if (spec.groups == "bisect") return spec.ranks - spec.ranks / 2;
  int number = 0;
  if (std::sscanf(spec.groups.c_str(), "mod:%d", &number) == 1 && number > 0) {
    return (spec.ranks + number - 1) / number;
  }
  if (std::sscanf(spec.groups.c_str(), "div:%d", &number) == 1 && number > 0) return std::min(number, spec.ranks);
  return spec.ranks;
}

}  // namespace col::colbench
