// The memory of this host's GPUs, for calls whose buffers are in another kind of memory than their group moves; and
// what is done with it: copies, comparisons, time.
#pragma once

#include <memory>

#include <col/device.hpp>

#include "backend/nccl/cuda_driver.hpp"

namespace col::nccl_backend {

// `cuda` must outlive it.
std::unique_ptr<DeviceMemory> make_device_memory(const CudaDriver& cuda);

}  // namespace col::nccl_backend
