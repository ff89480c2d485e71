// A world that another launcher has started, without a store from the user.
#pragma once

#include <string>
#include <vector>

#include <col/group.hpp>

#include "group/adopt/launchers.hpp"

namespace col::group::adopt {

// The name of the job for ranks and directories: "openmpi-0123456789abcdef". Empty if the launcher's variables do not
// tell.
std::string job_name(const LaunchedRank& own);

// Gives `spec` (with timeout, rank and world size set) the store that the ranks of the job share, and the control page
// that the ranks of this host share. On one host, the store is in a directory. On several hosts, rank 0 serves it from
// here on. Every call in a process gives the same objects. At the end of the process, this rank leaves if it has not
// left before.
//
// Blocks for the timeout at most: while it asks the launcher for the job's name (PMI), and while other processes of
// this user hold the lock of the directory. It does not wait for other ranks. Errors: unavailable (the ranks are on
// several hosts and nothing tells where rank 0 is; rank 0 cannot have its port; the launcher does not answer
// correctly); invalid_argument that names a variable; timeout; io; resource; not_initialized in a process that was
// forked from one that is in the same job as this rank.
void join_job(const LaunchedRank& own, ContextSpec& spec);

// For a rank that has waited for others for long. Throws mismatch, or already_initialized, if they cannot come, as they
// were told something else: see JobDirectory::why_apart(). Stays within the CallLimit of the thread.
void look_for_others(const ContextSpec& spec, bool is_last_look);

// This rank no longer needs the store or the directory. Does nothing if `spec` belongs to another world. Any later
// store call makes the rank come back. With several hosts, rank 0 blocks until the others have left too: for 10 seconds
// at most, and for one second if something has `failed`.
void leave_job(const ContextSpec& spec, bool failed) noexcept;

// The ranks of the job of `spec` in words, with the hosts on which its launcher was to start them, if it says so for
// certain (places.hpp).
std::string ranks_as_launched(const std::vector<int>& ranks, const ContextSpec& spec);

// Adds to `error` the variables that `spec` was made from, if it is a timeout in a world that another launcher has
// started: a left-over variable makes ranks wait for others that do not exist.
Error with_place(const Error& error, const ContextSpec& spec);

}  // namespace col::group::adopt
