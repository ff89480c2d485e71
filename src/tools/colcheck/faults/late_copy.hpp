// Delays a rank while the kernel copies another rank's memory for it (process_vm_readv), by a filter of system calls
// that asks first; and what the other ranks do with their memory meanwhile.
#pragma once

#include <functional>
#include <string>

#include <col/group.hpp>

#include "colcheck/engine/case.hpp"

namespace col::colcheck {

// One rank's part in such a call: a broadcast, scatter, allgather or alltoall of int32, on this group. `say` reports
// that this rank has come to a point, and returns when it may go on. The rank that `copies` says "copying" in the
// middle of its first copy. The others say "overwritten" when their call has failed and they have written into their
// buffers. Throws what the call throws. Returns what is wrong with the data, or that no system
// call can be held here, or "". Requires: called
// once in this process, because the filter stays.
std::string call_held(Group& group, const Case& c, bool copies, const std::function<void(const std::string&)>& say);

}  // namespace col::colcheck
