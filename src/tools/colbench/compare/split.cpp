#include "colbench/compare/split.hpp"

namespace col::colbench {
namespace {

Results half_of(const Results& results, int parity) {
  Results half = results;
  half.run.launches = (results.run.launches + 1 - parity) / 2;
  for (Cell& cell : half.cells) {
    std::erase_if(cell.launches, [&](const LaunchSamples& launch) { return launch.launch % 2 != parity; });
    for (LaunchSamples& launch : cell.launches) launch.launch /= 2;
  }
  return half;
}

}  // namespace

std::pair<Results, Results> split_alternating(const Results& results) {
  return {half_of(results, 0), half_of(results, 1)};
}

}  // namespace col::colbench
