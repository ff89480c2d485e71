// A backend that connects at once and whose operations never end by themselves: what ends them is the WaitContext. With
// it, the diagnosis of waits is tested without a network. And how the ranks of such a test must have ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/ranks.hpp"

namespace col::test {

// Registers it as "stuck", once per process.
void register_stuck_backend();

struct GroupEnding {
  ErrorCode code;
  std::optional<int> culprit = {};      // what the error must name; not looked at if it is empty
  std::vector<std::string> words = {};  // of its message
};
// The ranks in `ranks`; empty: all. Their messages have one line.
void check_ended(const std::vector<Outcome>& outcomes, const GroupEnding& ending, std::vector<int> ranks = {});
void check_all_good(const std::vector<Outcome>& outcomes);

}  // namespace col::test
