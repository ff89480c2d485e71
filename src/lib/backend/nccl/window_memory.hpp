// Memory of a GPU that NCCL works on where it is: what col::alloc() gives.
#pragma once

#include <cstddef>
#include <mutex>

#include "backend/nccl/communicator.hpp"
#include "backend/nccl/device.hpp"

namespace col::nccl_backend {

// Allocated by NCCL, in a form that other GPUs can map; from NCCL 2.27 on, the ranks register it as a window, all of
// them their own part, and collectives between such parts copy nothing that they need not.
class WindowMemory {
 public:
  // Throws resource. Not zeroed, and no window yet. `nccl` must outlive it; the communicator need not.
  WindowMemory(const NcclLibrary& nccl, const CudaDriver& cuda, int ordinal, std::size_t bytes);
  ~WindowMemory();
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  void* get() const noexcept { return memory_; }

  // Makes it a window: called by all ranks, for the memory that they have allocated together. Does nothing where NCCL
  // has no windows. Errors as Communicator::settle(). Requires: the device's context is current.
  void register_with(Communicator& communicator, WaitContext& wait);
  // Before the communicator ends. Requires: the device's context is current.
  void deregister() noexcept;

 private:
  const NcclLibrary& nccl_;
  const GpuDevice device_;  // its own reference: the memory may outlive the group
  const std::size_t bytes_;
  void* memory_ = nullptr;
  std::mutex mutex_;                      // guards what follows: the group may end while the memory is freed
  Communicator* communicator_ = nullptr;  // while it is a window
  ncclWindow_t window_ = nullptr;
};

}  // namespace col::nccl_backend
