// Memory of a GPU that NCCL uses in place: col::alloc() returns it.
#pragma once

#include <cstddef>
#include <mutex>

#include "backend/nccl/communicator.hpp"
#include "backend/nccl/device.hpp"

namespace col::nccl_backend {

// NCCL allocates it in a form that other GPUs can map. From NCCL 2.27 on, all ranks register their parts together as a
// window. Collectives between such parts make fewer copies.
class WindowMemory {
 public:
  // Throws resource. The memory is not zeroed, and not a window yet. `nccl` must outlive it; the communicator need not.
  WindowMemory(const NcclLibrary& nccl, const CudaDriver& cuda, int ordinal, std::size_t bytes);
  ~WindowMemory();
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  void* get() const noexcept { return memory_; }

  // Makes it a window. All ranks call this, for the memory that they have allocated together. Does nothing if NCCL has
  // no windows. Errors as Communicator::settle(). Requires: the device's context is current.
  void register_with(Communicator& communicator, WaitContext& wait);
  // Call it before the communicator ends. Requires: the device's context is current.
  void deregister() noexcept;

 private:
  const NcclLibrary& nccl_;
  const GpuDevice device_;  // its own reference, because the memory may outlive the group
  const std::size_t bytes_;
  void* memory_ = nullptr;
  std::mutex mutex_;                      // guards the members below: the group may end while the memory is freed
  Communicator* communicator_ = nullptr;  // set while it is a window
  ncclWindow_t window_ = nullptr;
};

}  // namespace col::nccl_backend
