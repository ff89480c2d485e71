// The physical bound of a cell: no operation can take less time.
#pragma once

#include <cstddef>

#include "colbench/cell/results.hpp"

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
// each core has to switch from one rank to the next); and the network between nodes (network_bound()). Nothing (0)
// if the machine has not been measured, and for buffers on GPUs. Of `run`, only the cores and the way to start are
// used.
Bound bound_of(const CellSpec& spec, const Machine& machine, const RunFacts& run);

// Sets the bound of every cell, and the problem of those below it. `strict`: a median below 0.8 of the bound, found
// again after the machine was measured again, makes the cell invalid.
void apply_bounds(Results& results, bool strict);

// ---- Between nodes --------------------------------------------------------------------------------------------------

// The least number of seconds for this number of bytes through the port of one node, without the travel time of the
// first byte. It is taken from the best messages of at most that length and of all longer ones: links may let a burst
// pass faster than a steady stream, and long messages may cost less for each byte. 0 below the second length that was
// measured.
double least_passing_seconds(const Machine::Fit& fit, std::size_t bytes);

// The faster of two positive times, where 0 is "not known".
double faster(double a, double b);
// Keeps the faster of two messages of the same length, and counts how many were compared.
void add_best_message(Machine::Fit& fit, const Machine::Fit::Message& message);

// The largest of three values: the bytes that must pass one node's port, at the best rate that was seen between nodes;
// what each rank has to reduce, at the best speed seen; and one message. It is not more than one message, because
// messages to several ranks may travel at once. Nothing (0) if all ranks of each group are on one node, or if no
// message between nodes has been measured. `common_start`: all ranks count from one moment, so a message for which only
// the receiver waits counts completely.
Bound network_bound(const CellSpec& spec, const Machine& machine, bool common_start);

}  // namespace col::colbench
