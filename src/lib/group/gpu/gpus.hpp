// The GPUs of this host, for groups and calls whose buffers are on one.
#pragma once

#include <optional>
#include <string>

#include <col/backend.hpp>

namespace col::group {

// The memory of the GPUs. Loads the libraries for it. Throws unavailable and says why if there are no GPUs.
DeviceMemory& gpus();

// The GPU that this thread has made current, as with cudaSetDevice(). It loads nothing: it returns nothing if the
// program has not loaded the CUDA driver itself.
std::optional<int> current_gpu() noexcept;

}  // namespace col::group
