#include "backend/nccl/registration.hpp"

#include <exception>

namespace col::nccl_backend {

Registration::Registration(Communicator& communicator, const GpuDevice& device, void* memory, std::size_t bytes) {
  const BesideCaptures beside(device.cuda());
  const ncclResult_t result = communicator.nccl().CommRegister(communicator.get(), memory, bytes, &handle_);
  if (result != ncclSuccess) throw communicator.error_of(result, "cannot register memory");
  communicator_ = &communicator;
  device_ = &device;
}

Registration::~Registration() {
  deregister();
}

void Registration::deregister() noexcept {
  const std::lock_guard lock(mutex_);
  Communicator* const communicator = communicator_;
  communicator_ = nullptr;
  if (communicator == nullptr || communicator->get() == nullptr || handle_ == nullptr) return;
  try {
    const GpuDevice::Scope scope(*device_);
    const BesideCaptures beside(device_->cuda());
    communicator->nccl().CommDeregister(communicator->get(), handle_);
  } catch (const std::exception&) {  // the driver is shutting down
  }
}

}  // namespace col::nccl_backend
