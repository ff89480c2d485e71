// NCCL starts together what it gets between ncclGroupStart() and ncclGroupEnd().
#pragma once

#include "backend/nccl/nccl_library.hpp"

namespace col::nccl_backend {

// Made after a successful GroupStart(). If an error made a thread leave the group open, NCCL would hold back everything
// that the thread gives it later, for any communicator.
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
