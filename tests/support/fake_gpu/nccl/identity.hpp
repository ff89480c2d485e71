// Unique identities: what ncclGetUniqueId makes and a communicator's shared file is named after.
#pragma once

#include <nccl.h>

#include <string>

namespace fake_nccl {

void make_identity(ncclUniqueId& id);
// Letters and digits. Throws for bytes that no call made.
std::string text_of(const ncclUniqueId& id);

}  // namespace fake_nccl
