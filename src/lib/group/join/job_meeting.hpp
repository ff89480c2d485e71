// How the ranks of a job find one another through a store alone: as those of a group do (meeting.hpp), with other
// words. The roster stays in the store until the next meeting of the job replaces it.
#pragma once

#include <memory>

#include <col/group.hpp>

#include "core/job/process.hpp"
#include "group/join/meeting.hpp"

namespace col::group {

// The part of the store in which a job meets. Requires a store.
std::shared_ptr<Store> meeting_scope(const ContextSpec& spec);

// Blocks until all ranks of `spec` have come. Of each member, process_nonce is the word of its core::ProcessId. Errors:
// those of ContextSpec::meet() but for what is about the page. On failure, the announcement is withdrawn, so that the
// rank can try again.
Roster meet_job(const ContextSpec& spec, Store& scope, const Deadline& deadline);

// That process has ended, which another rank has waited for.
Error lost_in_meeting(const ContextSpec& spec, int rank, const core::ProcessId& process);

}  // namespace col::group
