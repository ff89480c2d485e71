// Which hosts of a job that ssh starts have ranks that read the launcher's input.
#pragma once

#include "launch/job/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"

namespace col::launch {

// `host` is one of meeting.remotes.
bool reads_input(const JobSpec& spec, const Rendezvous& meeting, const HostSpec& host);
// The same for ranks of this host.
bool reads_input_here(const JobSpec& spec, const Rendezvous& meeting);

}  // namespace col::launch
