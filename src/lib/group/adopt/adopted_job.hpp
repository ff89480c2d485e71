// A world that another launcher has started, and that nobody has given a store.
#pragma once

#include <string>

#include <col/group.hpp>

#include "group/adopt/launchers.hpp"

namespace col::group::adopt {

// The job as ranks and directories call it; "openmpi-0123456789abcdef". Empty when the launcher's variables do not
// tell.
std::string job_name(const Place& place);

// Gives `spec` (its timeout, rank and world size set) the store that the ranks of the job share, and the control page
// that those of this host share. On one host the store is in a directory, on several rank 0 serves it (from here on).
// Every call in a process gives the same. At the end of the process this rank leaves, if it has not before.
//
// Blocks for the timeout at most: while the launcher is asked for the job's name (PMI), and while other processes of
// this user hold the lock of the directory. It does not wait for other ranks. Errors: unavailable, when the ranks are
// on several hosts and nothing tells where rank 0 is, when rank 0 cannot have its port, or with a launcher that does
// not answer as it should; invalid_argument naming a variable; timeout; io; resource; not_initialized in a process that
// was forked from one that is in a job.
void join_job(const Place& place, ContextSpec& spec);

// This rank needs the store no longer, nor the directory. Nothing happens when `spec` is of another world. Any store
// call afterwards makes it come back. Rank 0 of several hosts blocks for 10 seconds at most, until the others have left
// as well, and for one when something has `failed`.
void leave_job(const ContextSpec& spec, bool failed) noexcept;

// `error` with the variables that `spec` was made from, when it is a timeout in a world that another launcher has
// started: a variable that is left over from somewhere else makes ranks wait for others that do not exist.
Error with_place(const Error& error, const ContextSpec& spec);

}  // namespace col::group::adopt
