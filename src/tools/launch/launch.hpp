// Runs a job of several ranks on this machine: the engine of colrun, and of the tools that start their own ranks.
#pragma once

#include "launch/job_result.hpp"
#include "launch/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"

namespace col::launch {

class HeadLink;

// Runs the job that `spec` says, passes its ranks' output on, and returns when the last process of the job on this node
// is gone. What was said about a failure went to spec.stderr_fd already, except for result.error. With --dry-run and
// the like nothing is started: the text went to spec.stdout_fd.
//
// Blocks as long as the job runs; SIGINT, SIGTERM, SIGHUP and SIGQUIT that arrive meanwhile end the job, SIGUSR1,
// SIGUSR2, SIGALRM and SIGWINCH are passed on to the ranks. SIGTSTP (^Z) stops the ranks and then the caller; once the
// caller is continued so are the ranks. Never throws for a failed job.
// Requires: the caller has one thread, descriptors 0 to 2 are open, and nobody else waits for children meanwhile.
JobResult run(const JobSpec& spec);

// The part of a job of several nodes that is this one's. When another launcher has started this one, `head` is the way
// from there; when it comes to its end, the ranks are killed at once.
JobResult run_node(const JobSpec& spec, const Rendezvous& rendezvous, HeadLink* head = nullptr);

}  // namespace col::launch
