// The facts of a run in words: what every report begins with. All of it pure.
#pragma once

#include <string>
#include <vector>

#include "colbench/results.hpp"

namespace col::colbench {

// "colbench 0.1.0: 4 ranks on host (8 CPUs, NAME), 3 launches, common start, seed 0x1f", and of GPUs which ones, and
// which NCCL.
std::string run_text(const Results& results);
// "memory in GB/s, alone/together: 32K 88.1/150, 64M 11.2/13.0; hand-over 0.12 us": as many levels as `columns` allow,
// the smallest and the largest in any case. Empty when the machine was not measured.
std::string machine_text(const Machine& machine, std::size_t columns);
// "all rows: shm, float32, sum, 2 ranks, out of place, isolated": what rows share that has no column, and what
// the columns do not say of themselves. Empty when there
// is nothing to say.
std::string shared_text(const Results& results);

}  // namespace col::colbench
