// Time as bandwidth.
#include <algorithm>
#include <cstdio>

#include "colbench/results.hpp"

namespace col::colbench {
namespace {

// Messages go in one direction at a time, or their time is of one. store is an allreduce by another way.
double bus_factor(Operation operation, int ranks) {
  const auto collective = operation == Operation::store ? Collective::allreduce : collective_of(operation);
  return collective ? row_of(*collective).bus_factor(std::max(ranks, 1)) : 1;
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
