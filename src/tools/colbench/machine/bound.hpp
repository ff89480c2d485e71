// The physical bound of a cell: no operation can take less.
#pragma once

#include <cstddef>

#include "colbench/results.hpp"

namespace col::colbench {

// The bytes that the ranks of all groups together must read from their inputs and write to their outputs, in whatever
// way: every input once, every output once. `ranks` is the number of all ranks.
std::size_t bytes_that_must_move(const CellSpec& spec);

// The largest working set of a rank that machines are measured with: beyond the caches, within the memory.
std::size_t most_level(int ranks);

// The working set of one rank that the cell's bandwidth is to be looked up at: a power of two.
std::size_t level_of(const CellSpec& spec);

// The greatest of: those bytes at the best bandwidth that was seen at that working set (of all cores together); the
// hand-overs without which the ranks cannot know of each other, where more ranks than cores means that each core has to
// change from one rank to the next; and what the network between nodes sets (machine/network.hpp). Nothing (0) when the
// machine has not been measured, and for buffers on GPUs. Of `run` the cores and the way to start count.
Bound bound_of(const CellSpec& spec, const Machine& machine, const RunFacts& run);

// Sets the bound of every cell, and the problem of those below it. `strict`: a median below 0.8 of the bound, found
// again after the machine was measured again, makes the cell invalid.
void apply_bounds(Results& results, bool strict);

}  // namespace col::colbench
