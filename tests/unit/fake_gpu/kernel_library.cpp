// A library for FAKE_GPU_KERNELS with one kernel.
#include "support/fake_gpu/kernels.hpp"

namespace {

void add_one(fake_gpu::Extent, fake_gpu::Extent, void** arguments) {
  *fake_gpu::host_view<int>(fake_gpu::argument<int*>(arguments, 0), 1) += 1;
}

}  // namespace

extern "C" void fake_gpu_kernels() {
  fake_gpu::register_kernel<int*>("add_one", add_one);
}
