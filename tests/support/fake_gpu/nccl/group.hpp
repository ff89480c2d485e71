// ncclGroupStart and ncclGroupEnd: what a thread issued between them begins at the outermost end.
#pragma once

#include "support/fake_gpu/nccl/communicator.hpp"

namespace fake_nccl {

// A communicator that is being made: the job meets the other ranks.
struct Joining {
  std::shared_ptr<Communicator> communicator;
  std::function<void()> job;
};

void start_group();
bool is_in_group();
// What ncclGroupEnd returns; throws what went wrong.
ncclResult_t end_group();
// A call inside the group failed: nothing of the group will begin.
void spoil_group(ncclResult_t code);

// These begin at once outside a group. They return ncclInProgress for non-blocking communicators outside a group.
ncclResult_t add_operation(const std::shared_ptr<Communicator>& communicator, const Operation& operation,
                           cudaStream_t stream);
ncclResult_t add_joining(Joining joining);

}  // namespace fake_nccl
