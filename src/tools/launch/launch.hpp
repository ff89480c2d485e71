// Runs a job of several ranks on this machine: the engine of colrun, and of the tools that start their own ranks.
#pragma once

#include "launch/job_spec.hpp"

namespace col::launch {

// Starts spec.ranks processes of spec.command, passes their output on, and returns when the last process of the job is
// gone. What was said about a failure went to spec.stderr_fd already, except for result.error.
//
// Blocks as long as the job runs; SIGINT, SIGTERM, SIGHUP and SIGQUIT that arrive meanwhile end the job, SIGUSR1,
// SIGUSR2 and SIGWINCH are passed on to the ranks. SIGTSTP (^Z) stops the ranks and then the caller; once the caller is
// continued so are the ranks. Never throws for a failed job.
// Requires: the caller has one thread, descriptors 0 to 2 are open, and nobody else waits for children meanwhile.
JobResult run(const JobSpec& spec);

}  // namespace col::launch
