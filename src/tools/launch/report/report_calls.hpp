// What the ranks were doing in col when their job began to end: who waits for whom.
#pragma once

#include <string>
#include <vector>

#include "launch/report/job_story.hpp"

namespace col::launch {

// "ranks 0, 2-3 wait in allreduce #417 of group 'default'; rank 1 has not called it (last: barrier #12)": a line for
// each call that ranks are in, the earliest of a group first, then one for the ranks that are in none. Empty when no
// rank is in a call, unless the job ended because it lasted too long.
//
// Numbers are those of the group's collectives. A rank that is in no call is only compared with the calls of the group
// that it used last.
std::vector<std::string> describe_calls(const JobStory& story);

}  // namespace col::launch
