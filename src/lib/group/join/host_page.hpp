// The control page that the ranks of a host share, when they have nothing in common but a store.
//
//   the first rank of the host   makes it, and writes where it is, until all have it: page/<rank>/<meeting>
//   the others of that host      open it, and say so in the page
//
// The page is a file without a name: a rank opens it as a descriptor of the rank that made it. So nothing is left
// behind, in whatever way the ranks end. Each keeps its descriptor, by which coljob finds the page.
#pragma once

#include <memory>

#include <col/group.hpp>

#include "group/join/job_meeting.hpp"

namespace col::group {

// Sets local_rank, local_world_size and control of `spec`. Blocks until the page is there; on the rank that makes it,
// until all others have it. Errors: timeout and peer_lost, which name the rank; mismatch, io, resource.
void share_host_page(ContextSpec& spec, const Roster& roster, Store& scope, const Deadline& deadline);

}  // namespace col::group
