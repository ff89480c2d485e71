// Finds the rank that all others waited for.
#pragma once

#include "launch/report/job_story.hpp"

namespace col::launch {

// The rank that a job waited for in the end, if the job ran out of time, or if the first rank to fail did. That rank is
// stopped, or is not in any wait of col. Null if there is none, or if it cannot be told.
const RankStory* hung_rank(const JobStory& story);

// The rank to blame: the one that hung, else the first one that failed by itself; -1: none.
int blamed_rank(const JobStory& story);

}  // namespace col::launch
