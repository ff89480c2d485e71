// Whom does a call wait for, in the end? By the records of this node's ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <col/job.hpp>

#include "group/operation.hpp"

namespace col::group {

struct Surroundings;

// A rank that does not wait, or stands still, while others wait for it.
struct Holdup {
  RankActivity activity;
  int member = -1;  // its rank in the group; -1: it is no member
  int via = -1;     // the member that waits for it, and that this call waits for; -1: the call waits for it itself

  // "rank 2 is in none of col's waits: … (last seen in allreduce of group 'row')"
  std::string text() const;
};

// The one at the end of the chains that begin with the operations' counterparts. Of several: one that stands still, one
// that has not come to the operation, the one that has been silent longest. Nothing where records do not tell.
// Whether ranks stand still is looked for where there are few, or when it is `thorough`.
std::optional<Holdup> find_holdup(const Surroundings& surroundings, const std::vector<Operation>& operations,
                                  bool thorough);

// " (last seen in allreduce of group 'row')"; empty where nothing has been seen.
std::string last_seen(const RankActivity& activity);

}  // namespace col::group
