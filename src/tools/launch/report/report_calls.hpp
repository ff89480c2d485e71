// What the ranks were doing in col when their job began to end: which rank waits for which.
#pragma once

#include <string>
#include <vector>

#include "launch/report/job_story.hpp"

namespace col::launch {

// "ranks 0, 2-3 wait in allreduce #417 of group 'default'; rank 1 has not called it (last: barrier #12)". There is one
// line for each call that ranks are in, with the earliest call of a group first, then one line for the ranks that are
// in no call. Empty if no rank is in a call, unless the job ended because it took too long.
//
// Numbers are those of the group's collectives. A rank that is in no call is compared only with the calls of the group
// that it used last.
std::vector<std::string> describe_calls(const JobStory& story);

}  // namespace col::launch
