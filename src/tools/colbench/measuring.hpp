// Where the ranks of a measurement come from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "colbench/measure.hpp"
#include "common/screen.hpp"

namespace col::colbench {

// In ranks of this program's own, which are started for every launch. `command` is for reports, `title` as in JobSpec.
// Requires: this process has one thread, and is not a rank of a job.
Measure measure_in_own_ranks(const tools::Screen& screen, std::vector<std::string> command, std::span<char> title);

// One of those ranks. `arguments` are those behind --spawned. Returns the exit code.
int run_spawned_rank(const std::vector<std::string>& arguments);

// In the ranks that are there already, by rank 0 of them: calls `work` with a Measure, and returns what it returns. The
// other ranks help until that has ended, and return 0.
int measure_in_world(Context& context, const tools::Screen& screen, const std::vector<std::string>& command,
                     const std::function<int(const Measure&)>& work);

}  // namespace col::colbench
