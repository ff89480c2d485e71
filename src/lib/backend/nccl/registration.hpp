// Memory that others have allocated, as one communicator knows it: NCCL then uses it in place where it can.
#pragma once

#include <cstddef>
#include <mutex>

#include "backend/nccl/communicator.hpp"
#include "backend/nccl/device.hpp"

namespace col::nccl_backend {

class Registration {
 public:
  // Throws what Communicator::error_of() gives. Requires: the device's context is current, and nobody else uses the
  // communicator.
  Registration(Communicator& communicator, const GpuDevice& device, void* memory, std::size_t bytes);
  ~Registration();  // as deregister()
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  // Call it before the communicator ends. After that, it does nothing.
  void deregister() noexcept;

 private:
  std::mutex mutex_;                      // guards what follows: the group may end while it is released
  Communicator* communicator_ = nullptr;  // null once it is not registered any more
  const GpuDevice* device_ = nullptr;     // of the communicator
  void* handle_ = nullptr;                // null: NCCL makes no use of such memory, by NCCL_LOCAL_REGISTER=0
};

}  // namespace col::nccl_backend
