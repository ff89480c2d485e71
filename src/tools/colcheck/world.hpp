// colcheck inside a world of ranks: what its lead, rank 0, and the others do.
#pragma once

#include <string>

#include <col/group.hpp>

#include "colcheck/options.hpp"
#include "common/screen.hpp"

namespace col::colcheck {

// Runs what `options` ask for in the world that `context` is in, and returns the exit code: on the lead the verdict, on
// the others 0, since one word is enough for a launcher. `command` is for reports.
int run_world(Context& context, const Options& options, const tools::Screen& screen, const std::string& command);

}  // namespace col::colcheck
