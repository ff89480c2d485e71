// Device images and the host functions that stand for their kernels.
#pragma once

#include "support/fake_gpu/cuda/stream.hpp"
#include "support/fake_gpu/kernels.hpp"

namespace fake_gpu {

struct KernelEntry {
  std::string name;
  Kernel kernel;
  std::vector<size_t> argument_sizes;
};

struct Module {
  std::shared_ptr<Context> context;
};

struct Function {
  std::shared_ptr<Context> context;
  CUmodule module;
  std::shared_ptr<const KernelEntry> entry;
};

// Whether the bytes begin as something the driver can load.
bool is_device_image(const void* image);
// Loads the library of FAKE_GPU_KERNELS, if it is set; the machine is not locked.
void load_kernels_of_environment();
// A launch of the kernel, with a copy of its arguments as they are now.
Work launch_of(std::shared_ptr<const KernelEntry> entry, Extent grid, Extent block, void** arguments);

}  // namespace fake_gpu
