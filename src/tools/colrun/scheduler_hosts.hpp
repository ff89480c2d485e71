// The hosts that a scheduler gave to this job, from the lists that it leaves for programs such as mpirun.
#pragma once

#include <vector>

#include "colrun/settings.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

// Whether `scheduler` gives a list of hosts, so that colrun has to start itself on the others: PBS and LSF do. Slurm
// and Kubernetes start a colrun on each node.
bool gives_hosts(launch::Scheduler scheduler);

// PBS: the file PBS_NODEFILE, with a line for each rank. LSF: the file LSB_DJOB_HOSTFILE, likewise, or LSB_MCPU_HOSTS,
// "a 4 b 2". In the order of the list; a host has as many slots as the list says. Throws UsageError that names the
// variable.
std::vector<launch::HostSpec> scheduler_hosts(launch::Scheduler scheduler, const Surroundings& surroundings);

}  // namespace col::colrun
