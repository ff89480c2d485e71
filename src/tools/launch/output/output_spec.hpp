// Where the output of the ranks goes and what they read.
#pragma once

#include <string>
#include <vector>

namespace col::launch {

// Patterns are those of rank_pattern.hpp.
struct OutputSpec {
  std::string label = {};         // pattern put before every line: "[%r] "; empty: none
  bool timestamps = false;        // every line begins with the time at which its first byte was read (before the label)
  std::string file_pattern = {};  // of the file that each stream of each rank goes to; empty: to the console
  bool tee = false;               // with a file pattern: to the console as well
  std::vector<int> console_ranks = {};  // global ranks whose output the console shows, sorted; empty: all
  bool merge = false;                   // stderr joins stdout where it is written, so that their order is kept
  bool pty = false;                     // stdout and stderr are a pseudo-terminal (and so merged)
};

struct InputSpec {
  enum class To { rank, all, none } to = To::rank;
  int rank = 0;  // global
};

}  // namespace col::launch
