// Sees that a process of this host ends, where no launcher does, and tells the other ranks at once.
//
// Each rank watches the next one that lives, in the order of the page: so each end is seen, once, also if several end
// together. One thread of the process watches for all of its jobs. It sleeps until a process ends.
#pragma once

#include <memory>

#include <col/job.hpp>

namespace col::group {

// Watches while what it returns exists, among the ranks that have joined the page by now and have not left it. Requires
// that the page lives as long, and that `own`, this process's place in it, has joined. Null where nothing can be
// watched: no other process has joined, or the kernel has no descriptors of processes (before 5.3). Who waits then
// looks for itself, after 100 ms; and so it does for a rank that only one has watched which has left the job.
std::shared_ptr<void> watch_ends(ControlPage& page, int own);

}  // namespace col::group
