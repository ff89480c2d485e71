// The control page of a host's ranks, when the ranks of the job share only a store.
//
//   the first rank of the host   makes it, and has its place in key page/<rank>/<meeting> until all have opened it
//   the others of that host      open it, and say so in the page
//
// The page is a file without a name: a rank opens it as a descriptor of the rank that made it. So nothing is left
// behind, in whatever way the ranks end. Each rank keeps its descriptor open: by it, coljob finds the page.
#pragma once

#include <memory>

#include <col/group.hpp>

#include "group/join/job_meeting.hpp"

namespace col::group {

// Sets local_rank, local_world_size and control of `spec`. Blocks until the page is there; on the rank that makes it,
// until all others have it. Errors: timeout and peer_lost, which name the rank; mismatch, io, resource.
void share_host_page(ContextSpec& spec, const Roster& roster, Store& scope, const Deadline& deadline);

}  // namespace col::group
