#include "backend/nccl/window_memory.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace col::nccl_backend {

WindowMemory::WindowMemory(const NcclLibrary& nccl, const CudaDriver& cuda, int ordinal, std::size_t bytes)
    : nccl_(nccl), device_(cuda, ordinal), bytes_(std::max<std::size_t>(bytes, 1)) {
  const GpuDevice::Scope scope(device_);
  const ncclResult_t result = nccl_.MemAlloc(&memory_, bytes_);
  if (result == ncclSuccess) return;
  throw Error(ErrorCode::resource, fmt::format("nccl: cannot allocate {} bytes of GPU {}: {}", bytes, ordinal,
                                               nccl_.GetErrorString(result)));
}

WindowMemory::~WindowMemory() {
  try {
    const GpuDevice::Scope scope(device_);
    deregister();
    nccl_.MemFree(memory_);
  } catch (const std::exception&) {  // the driver is shutting down, and takes it back
  }
}

void WindowMemory::register_with(Communicator& communicator, WaitContext& wait) {
  if (nccl_.CommWindowRegister == nullptr) return;
  const std::lock_guard lock(mutex_);
  wait.describe("the ranks to register memory with NCCL");
  communicator.settle(nccl_.CommWindowRegister(communicator.get(), memory_, bytes_, &window_, NCCL_WIN_COLL_SYMMETRIC),
                      "cannot register memory", wait);
  communicator_ = &communicator;
}

void WindowMemory::deregister() noexcept {
  const std::lock_guard lock(mutex_);
  if (communicator_ != nullptr && communicator_->get() != nullptr)
    nccl_.CommWindowDeregister(communicator_->get(), window_);
  communicator_ = nullptr;
}

}  // namespace col::nccl_backend
