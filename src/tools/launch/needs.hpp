// The needs of a job, beside the limits of this host.
#pragma once

#include "launch/job/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"
#include "launch/processes/limits.hpp"

namespace col::launch {

Needs needs_of(const JobSpec& spec, const Rendezvous& meeting);

}  // namespace col::launch
