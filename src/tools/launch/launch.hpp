// Runs a job of several ranks on this machine: the engine of colrun, and of tools that start their own ranks.
#pragma once

#include <span>

#include "launch/job/job_result.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"

namespace col::launch {

class HeadLink;

// Runs the job of `spec`, passes on the output of its ranks, and returns when the last process of the job on this node
// is gone. Messages about a failure have already been written to spec.stderr_fd, except for result.error. With
// --dry-run and the like, nothing is started, and the text is written to spec.stdout_fd.
//
// Blocks as long as the job runs. SIGINT, SIGTERM, SIGHUP and SIGQUIT that arrive meanwhile end the job. SIGUSR1,
// SIGUSR2, SIGALRM and SIGWINCH are passed on to the ranks. SIGTSTP (^Z) stops the ranks and then the caller; when the
// caller is continued, the ranks are too. Never throws for a failed job.
//
// Requires: the caller has one thread, descriptors 0 to 2 are open, and nobody else waits for children meanwhile.
JobResult run(const JobSpec& spec);

// Runs the part of a job of several nodes that belongs to this node. If another launcher has started this one, `head`
// is the connection from there; when it ends, the ranks are killed at once.
JobResult run_node(const JobSpec& spec, const Rendezvous& rendezvous, HeadLink* head = nullptr);

// `colrun --agent`: the launcher of one node, which another launcher has started by ssh (remotes.hpp). Reads its job
// from stdin, runs it, and returns the exit code. If stdin ends before the job does, the ranks are killed at once: the
// process that started this launcher is gone.
int run_agent(std::span<char> title);

}  // namespace col::launch
