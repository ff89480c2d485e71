// For tools that are programs of several ranks themselves: starts ranks of the tool's own program.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/screen.hpp"

namespace col::launch {

struct OwnRanks {
  std::string tool;                         // who speaks in messages
  std::vector<std::string> arguments = {};  // of each rank, after "--spawned" and the text of the screen
  int ranks = 1;
  tools::Screen screen = {};  // the tool's own
  std::vector<int> keep_fds = {};
  std::span<char> title = {};  // as in JobSpec
};

struct OwnResult {
  int exit_code = 0;  // rank 0's verdict; without one what the tools say of ranks that failed
  int signal = 0;     // the tool was interrupted by this signal: clean up, then die of it (signals.hpp)
};

// Runs them and returns when the last one is gone; as run(). Rank 0 leaves its verdict with leave_verdict(). What the
// launcher has to say of a failure goes to stderr. Throws std::system_error when it cannot begin.
OwnResult run_own_ranks(const OwnRanks& job);

// By rank 0: gives `code` to run_own_ranks() by other means than the rank's exit code, which its launcher would take
// for a failure. False when `screen` has no such means.
bool leave_verdict(const tools::Screen& screen, int code);

}  // namespace col::launch
