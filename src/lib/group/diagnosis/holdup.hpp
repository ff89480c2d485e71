// Finds the rank that a call waits for in the end, by the records of this node's ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <col/job.hpp>

#include "group/call/operation.hpp"

namespace col::group {

struct Surroundings;

// A rank that does not wait, or is stopped, while others wait for it.
struct Holdup {
  RankActivity activity;
  int member = -1;  // its rank in the group; -1: it is not a member
  int via = -1;     // the member that waits for it and that this call waits for; -1: the call waits for it directly

  // "rank 2 is in none of col's waits: … (last seen in allreduce of group 'row')"
  std::string text() const;
};

// The rank at the end of the chains that begin with the operations' counterparts. If there are several: a stopped one,
// else one that has not come to the operation, else the one that has been silent for the longest time. Nothing if the
// records do not tell. It checks for stopped ranks only if there are few ranks, or if it is `thorough`.
std::optional<Holdup> find_holdup(const Surroundings& surroundings, const std::vector<Operation>& operations,
                                  bool thorough);

// " (last seen in allreduce of group 'row')"; empty if nothing has been seen.
std::string last_seen(const RankActivity& activity);

}  // namespace col::group
