// The kernels in the form that the driver loads: a fat binary with code for several generations of GPUs. embed.py makes
// the source file that holds it.
#pragma once

#include <cstdint>
#include <span>

namespace col::nccl_backend {

// Empty in a build without nvcc.
extern const std::span<const std::uint64_t> kKernelImage;

}  // namespace col::nccl_backend
