// The GPUs of this host, for groups and calls whose buffers are on one.
#pragma once

#include <optional>
#include <string>

#include <col/backend.hpp>

namespace col::group {

// Their memory. Loads what there is to load. Throws unavailable: why there are none.
DeviceMemory& gpus();

// The one that this thread has made current, as by cudaSetDevice(). Loads nothing: nothing also where the program has
// not loaded the CUDA driver itself.
std::optional<int> current_gpu() noexcept;

}  // namespace col::group
