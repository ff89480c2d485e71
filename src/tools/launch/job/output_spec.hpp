// Where the ranks' output goes, and what they read.
#pragma once

#include <string>
#include <vector>

#include "json/json_fields.hpp"

namespace col::launch {

// Patterns are those of rank_pattern.hpp.
struct OutputSpec {
  std::string label = {};         // pattern at the start of every line: "[%r] "; empty: none
  bool timestamps = false;        // every line begins with the time at which its first byte was read (before the label)
  std::string file_pattern = {};  // pattern of the file for each stream of each rank; empty: to the console
  bool tee = false;               // with a file pattern: to the console too
  std::vector<int> console_ranks = {};  // global ranks whose output the console shows, sorted; empty: all
  bool merge = false;                   // stderr joins stdout where it is written, so their order is kept
  bool pty = false;                     // stdout and stderr are a pseudo-terminal (and therefore merged)
};

template <class Visit>
void fields(OutputSpec& output, Visit& visit) {
  auto& [label, timestamps, file_pattern, tee, console_ranks, merge, pty] = output;
  visit("label", label);
  visit("timestamps", timestamps);
  visit("file", file_pattern);
  visit("tee", tee);
  visit("console_ranks", console_ranks);
  visit("merge", merge);
  visit("pty", pty);
}

struct InputSpec {
  enum class To { rank, all, none } to = To::rank;
  int rank = 0;  // global
};

template <class Visit>
void fields(InputSpec& input, Visit& visit) {
  auto& [to, rank] = input;
  visit("to", to, core::Numbered{InputSpec::To::none});
  visit("rank", rank);
}

}  // namespace col::launch
