// Which hosts of a job that is started by ssh have ranks that read the launcher's input.
#pragma once

#include "launch/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"

namespace col::launch {

// `host` is one of meeting.remotes.
bool reads_input(const JobSpec& spec, const Rendezvous& meeting, const HostSpec& host);
// Ranks of this host.
bool reads_input_here(const JobSpec& spec, const Rendezvous& meeting);

}  // namespace col::launch
