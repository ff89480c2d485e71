// The communicators of this process, by handle: it cannot be followed as a pointer and is never given twice. And the
// unique identities that ncclGetUniqueId makes and a communicator's shared file is named after.
#pragma once

#include "support/fake_gpu/nccl/communicator.hpp"

namespace fake_nccl {

struct Registry {
  std::mutex mutex;
  std::map<ncclComm_t, std::shared_ptr<Communicator>> communicators;
  std::set<std::pair<std::string, int>> used;  // unique identity and rank: good for one communicator
  std::map<void*, size_t> memory;              // of ncclMemAlloc
  uintptr_t next_handle = uintptr_t{0x21} << 40;

  // Whether ncclMemAlloc gave it all, in one piece. Locked.
  bool has(const void* begin, size_t bytes) const;
  uintptr_t new_handle() { return next_handle += 16; }  // locked
};

// One for the process, never destroyed: streams may still run when static objects are.
Registry& registry();

ncclComm_t add_communicator(std::shared_ptr<Communicator> communicator);
// Throws for a handle that is none.
std::shared_ptr<Communicator> find_communicator(ncclComm_t handle);
void remove_communicator(ncclComm_t handle);
std::vector<std::shared_ptr<Communicator>> all_communicators();

void make_identity(ncclUniqueId& id);
// Letters and digits. Throws for bytes that no call made.
std::string text_of(const ncclUniqueId& id);

}  // namespace fake_nccl
