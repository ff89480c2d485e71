#include "backend/nccl/registration.hpp"

#include <exception>
#include <utility>

namespace col::nccl_backend {

ncclResult_t Registration::enter(Communicator& communicator, void* memory, std::size_t bytes) {
  const BesideCaptures beside(cuda_);
  return communicator.nccl().CommRegister(communicator.get(), memory, bytes, &handle_);
}

ncclResult_t Registration::deregister(Communicator& communicator) noexcept {
  void* const handle = std::exchange(handle_, nullptr);
  if (communicator.get() == nullptr || handle == nullptr) return ncclSuccess;
  try {
    const BesideCaptures beside(cuda_);
    return communicator.nccl().CommDeregister(communicator.get(), handle);
  } catch (const std::exception&) {  // the driver is shutting down
    return ncclSuccess;
  }
}

}  // namespace col::nccl_backend
