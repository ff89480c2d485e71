// Who came last to the calls of groups that have ranks on several hosts.
#pragma once

#include "launch/report/job_story.hpp"

namespace col::launch {

// Makes CallSite::compared, waited, last and late of such groups anew, from the calls that all ranks have sampled, and
// removes the samples, which are much. A second time, it changes nothing. As between ranks of one host, only durations
// are compared, and no clock (CallWatch). What the last rank sends is with its neighbours sooner than on other hosts,
// so what is less than the time of a message between the two hosts that are furthest from each other says nothing. Does
// nothing unless all nodes have watched their ranks.
void compare_hosts(JobStory& story);

}  // namespace col::launch
