// A world on one host that another launcher has started, and that nobody has given a store.
#pragma once

#include <string>

#include <col/group.hpp>

#include "group/adopt/launchers.hpp"

namespace col::group::adopt {

// The job as ranks and directories call it; "openmpi-0123456789abcdef". Empty when the launcher's variables do not
// tell.
std::string job_name(const Place& place);

// Gives `spec` (its timeout, rank and world size set) the store and the control page that the ranks of the job share.
// Every call in a process gives the same. At the end of the process this rank leaves, if it has not before.
//
// Blocks for the timeout at most: while the launcher is asked for the job's name (PMI), and while other processes of
// this user hold the lock of the directory. It does not wait for other ranks. Errors: unavailable, with several hosts
// or with a launcher that does not answer as it should; timeout; io; resource; not_initialized in a process that was
// forked from one that is in a job.
void join_local_job(const Place& place, ContextSpec& spec);

// This rank needs the directory no longer. Nothing happens when `spec` is of another world. Any store call afterwards
// makes it come back.
void leave_local_job(const ContextSpec& spec) noexcept;

// `error` with the variables that `spec` was made from, when it is a timeout in a world that another launcher has
// started: a variable that is left over from somewhere else makes ranks wait for others that do not exist.
Error with_place(const Error& error, const ContextSpec& spec);

}  // namespace col::group::adopt
