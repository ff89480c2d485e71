// Memory that others have allocated, as one communicator knows it: NCCL then uses it in place where it can.
#pragma once

#include <cstddef>

#include "backend/nccl/communicator.hpp"
#include "backend/nccl/device.hpp"

namespace col::nccl_backend {

// It may outlive the communicator, and then does nothing. Requires for both functions: the device's context is current,
// and nobody else uses the communicator.
class Registration {
 public:
  explicit Registration(const CudaDriver& cuda) : cuda_(cuda) {}

  ncclResult_t enter(Communicator& communicator, void* memory, std::size_t bytes);
  // Does nothing the second time, and when the communicator has ended. Otherwise it stays until that ends.
  ncclResult_t deregister(Communicator& communicator) noexcept;

 private:
  const CudaDriver& cuda_;
  void* handle_ = nullptr;  // null: NCCL makes no use of such memory, by NCCL_LOCAL_REGISTER=0
};

}  // namespace col::nccl_backend
