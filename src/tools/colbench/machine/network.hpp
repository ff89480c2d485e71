// The bound of a cell whose ranks are on several nodes: the data that must pass between the nodes.
#pragma once

#include <cstddef>

#include "colbench/results.hpp"

namespace col::colbench {

// The least number of seconds for this number of bytes through the port of one node, without the travel time of the
// first byte. It is taken from the best messages of at most that length and of all longer ones: links may let a burst
// pass faster than a steady stream, and long messages may cost less for each byte. 0 below the second length that was
// measured.
double least_passing_seconds(const Machine::Fit& fit, std::size_t bytes);

// The largest of three values: the bytes that must pass one node's port, at the best rate that was seen between nodes;
// what each rank has to reduce, at the best speed seen; and one message. It is not more than one message, because
// messages to several ranks may travel at once. Nothing (0) if all ranks of each group are on one node, or if no
// message between nodes has been measured. `common_start`: all ranks count from one moment, so a message for which only
// the receiver waits counts completely.
Bound network_bound(const CellSpec& spec, const Machine& machine, bool common_start);

}  // namespace col::colbench
