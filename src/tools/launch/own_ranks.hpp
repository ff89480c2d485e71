// For tools that are themselves programs of several ranks: starts ranks of the tool's own program.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/screen.hpp"

namespace col::launch {

struct OwnRanks {
  std::string tool;                         // the name in messages
  std::vector<std::string> arguments = {};  // of each rank, after "--spawned" and the text of the screen
  int ranks = 1;
  tools::Screen screen = {};  // the tool's own
  std::vector<int> keep_fds = {};
  std::span<char> title = {};  // as in JobSpec
};

struct OwnResult {
  int exit_code = 0;  // rank 0's verdict; without one, the tools' exit code for ranks that failed
  int signal = 0;     // the signal that interrupted the tool: clean up, then die of it (signals.hpp)
};

// Runs them, and returns when the last one is gone, as run() does. Rank 0 leaves its verdict with leave_verdict(). The
// launcher's messages about a failure go to stderr. Throws std::system_error if it cannot begin.
OwnResult run_own_ranks(const OwnRanks& job);

// For rank 0: passes `code` to run_own_ranks(), but not as its exit code, which the launcher would treat as a failure.
// Returns false if `screen` has no way to do so.
bool leave_verdict(const tools::Screen& screen, int code);

}  // namespace col::launch
