// Who kept the others waiting?
#pragma once

#include "launch/report/job_story.hpp"

namespace col::launch {

// The rank that a job waited for in the end, when it ran out of time, or when a rank did that was the first to fail:
// it stands still, or is in none of col's waits. Null where there is none, or it cannot be told.
const RankStory* hung_rank(const JobStory& story);

// The rank to blame: the one that hung, else the first that failed by itself; -1: none.
int blamed_rank(const JobStory& story);

}  // namespace col::launch
