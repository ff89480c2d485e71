// How many launches a run takes.
#pragma once

#include <functional>
#include <span>

#include "colbench/machine/probe.hpp"
#include "colbench/measure.hpp"
#include "colbench/rank/order.hpp"

namespace col::colbench {

// Has ranks carry out an order, and returns what they have found.
using Launch = std::function<Results(const Order& order)>;

// Adds launches to `all` until there are enough, or one of them has ended the run: as many as `method` says, or
// - never fewer than kFewestLaunches, and never more than kMostLaunches;
// - no more when each cell has had its max_time, and min_iterations unless they take five times that;
// - no more when, after 10 or 20 of them, the interval of every cell is within the target. Only then: whoever looks
//   after every launch stops where chance has made an interval narrow.
// The machine is probed before every launch and after the last one, and calibrated, where that is wanted, by orders of
// its own in between, so that all launches that take samples are alike. A cell below its bound has the machine
// calibrated again.
void run_launches(Results& all, const Method& method, std::span<const CellSpec> cells, const Launch& launch,
                  Probe (*probe)() = &take_probe);

// The count of launches, greater than `made`, at which it is next seen whether there are enough.
int next_look(const Method& method, int made);

}  // namespace col::colbench
