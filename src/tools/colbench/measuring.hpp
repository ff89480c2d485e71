// The ranks of a measurement.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "colbench/cell/method.hpp"
#include "common/screen.hpp"

namespace col::colbench {

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
