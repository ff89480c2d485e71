// The process in which the nodes of a job meet: a child of the watcher on one of them.
//
// It does not belong to the ranks, and holds nothing of theirs. It serves the meeting's port and the job's store, and
// ends with the job or with the watcher.
#pragma once

#include <sys/types.h>

#include <vector>

#include "launch/nodes/endpoint.hpp"
#include "launch/nodes/meeting.hpp"

namespace col::launch {

// Forks it. `close_in_child`: descriptors of the watcher that must end with the watcher. Throws LaunchError (125).
pid_t start_meeting(Listener listener, const MeetingSpec& spec, const std::vector<int>& close_in_child);

}  // namespace col::launch
