// The launches of a run: how many it takes, and how they become one result.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "colbench/cell/results.hpp"
#include "colbench/machine/latency.hpp"
#include "colbench/rank/orders.hpp"
#include "common/screen.hpp"

namespace col::colbench {

// Lets ranks carry out an order, and returns their results.
using Launch = std::function<Results(const Order& order)>;

// Adds launches to `all` until there are enough, or one of them has ended the run. The number is the one in `method`,
// otherwise:
// - at least kFewestLaunches, and at most kMostLaunches
// - it ends when each cell has had its max_time, and min_iterations unless these take five times that
// - it ends when, after 10 or 20 launches, the interval of every cell is within the target. It checks only at these two
//   points: checking after every launch would stop where chance has made an interval narrow.
//
// The machine is probed before every launch and after the last one. Calibrations, if wanted, run in separate orders in
// between, so that all launches that take samples are alike. If a cell is below its bound, the machine is calibrated
// again.
void run_launches(Results& all, const Method& method, std::span<const CellSpec> cells, const Launch& launch,
                  Probe (*probe)() = &take_probe);

// The number of launches, greater than `made`, at which it next checks whether there are enough.
int next_look(const Method& method, int made);

// Adds the results of one more launch. Cells are identified by their spec. For the machine, the best value is kept; for
// fitted values, one near their median.
void add_launch(Results& all, const Results& launch);

// Sets what is known only after all launches: why sampling ended, which cells are invalid, the exit code.
void conclude(Results& results, const Method& method);

// In ranks of this program's own, which are started for every launch. `command` is for reports, `title` as in JobSpec.
// Requires: this process has one thread, and is not a rank of a job.
Measure measure_in_own_ranks(const tools::Screen& screen, std::vector<std::string> command, std::span<char> title);

// One of those ranks. `arguments` come after --spawned. Returns the exit code.
int run_spawned_rank(const std::vector<std::string>& arguments);

// In existing ranks. On rank 0, it calls `work` with a Measure, and returns its result. The other ranks help until that
// has ended, and return 0.
int measure_in_world(Context& context, const tools::Screen& screen, const std::vector<std::string>& command,
                     const std::function<int(const Measure&)>& work);

}  // namespace col::colbench
