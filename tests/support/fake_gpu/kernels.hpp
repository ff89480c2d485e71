// Kernels of tests: host functions that stand for the kernels of a device image.
//
// The stand-in for libcuda.so.1 cannot run device code. It takes any fat binary or ELF image, and finds its kernels by
// name among the functions registered here. A kernel is called once per launch, on the thread of its stream, and does
// the work of the whole grid. Pointers among its arguments are device addresses: host_view() makes them usable.
//
// A program that is not a test's own (colcheck under the stand-ins, say) gets its kernels from a shared library that
// FAKE_GPU_KERNELS names: cuInit loads it and calls its C function `fake_gpu_kernels()`, which registers them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "support/fake_gpu/control.hpp"

namespace fake_gpu {

struct Extent {
  unsigned x, y, z;
};

// `arguments[i]` points to a copy of the i-th argument, made when the kernel was launched.
using Kernel = void (*)(Extent grid, Extent block, void** arguments);

}  // namespace fake_gpu

extern "C" {
// `sizes` are the bytes of each argument; the last registration of a name wins.
void fake_gpu_register_kernel(const char* name, fake_gpu::Kernel kernel, const size_t* sizes, size_t arguments);
// As an access outside any allocation does on a device: the context is broken from here on. Never returns.
[[noreturn]] void fake_gpu_illegal_access(const char* text);
}

namespace fake_gpu {

// register_kernel<float*, size_t>("scale", scale): the types are those of the kernel's parameters.
template <typename... Arguments>
void register_kernel(const char* name, Kernel kernel) {
  const std::array<size_t, sizeof...(Arguments)> sizes{sizeof(Arguments)...};
  fake_gpu_register_kernel(name, kernel, sizes.data(), sizes.size());
}

template <typename T>
T argument(void** arguments, size_t index) {
  return *static_cast<T*>(arguments[index]);
}

// `count` elements at a device address, as host memory. An address that is not valid breaks the context.
template <typename T>
T* host_view(const void* pointer, size_t count) {
  if (count == 0) return nullptr;
  void* view = fake_gpu_host_view(reinterpret_cast<uint64_t>(pointer), count * sizeof(T));
  if (view == nullptr) fake_gpu_illegal_access("a kernel reached outside the allocations of the device");
  return static_cast<T*>(view);
}

}  // namespace fake_gpu
