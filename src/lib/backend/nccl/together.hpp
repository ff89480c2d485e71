// What NCCL is given between ncclGroupStart() and ncclGroupEnd() starts together.
#pragma once

#include "backend/nccl/nccl_library.hpp"

namespace col::nccl_backend {

// Made after a GroupStart() that succeeded. A thread that left the group open, for an error in between, would have
// everything that it gives to NCCL later kept back, for whatever communicator.
class Together {
 public:
  explicit Together(const NcclLibrary& nccl) : nccl_(nccl) {}
  ~Together() {
    if (open_) nccl_.GroupEnd();
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  ncclResult_t end() {
    open_ = false;
    return nccl_.GroupEnd();
  }

 private:
  const NcclLibrary& nccl_;
  bool open_ = true;
};

}  // namespace col::nccl_backend
