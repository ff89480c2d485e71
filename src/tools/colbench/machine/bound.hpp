// The physical bound of a cell: no operation can take less time.
#pragma once

#include <cstddef>

#include "colbench/results.hpp"

namespace col::colbench {

// The bytes that the ranks of all groups together must read from their inputs and write to their outputs, in whatever
// way: every input once, every output once. `ranks` is the number of all ranks.
std::size_t bytes_that_must_move(const CellSpec& spec);

// The largest working set of a rank for measuring the machine: larger than the caches, and within the memory.
std::size_t most_level(int ranks);

// The working set of one rank at which the cell's bandwidth is looked up: a power of two.
std::size_t level_of(const CellSpec& spec);

// The largest of three values: those bytes at the best bandwidth that was seen for that working set (of all cores
// together); the cache-line transfers without which the ranks cannot know of each other (with more ranks than cores,
// each core has to switch from one rank to the next); and the network between nodes (machine/network.hpp). Nothing (0)
// if the machine has not been measured, and for buffers on GPUs. Of `run`, only the cores and the way to start are
// used.
Bound bound_of(const CellSpec& spec, const Machine& machine, const RunFacts& run);

// Sets the bound of every cell, and the problem of those below it. `strict`: a median below 0.8 of the bound, found
// again after the machine was measured again, makes the cell invalid.
void apply_bounds(Results& results, bool strict);

}  // namespace col::colbench
