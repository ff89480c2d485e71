// Entry points: device images and kernel launches.
#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"
#include "support/fake_gpu/cuda/module.hpp"

using namespace fake_gpu;

namespace {

CUresult load(Call& call, CUmodule* handle, const void* image) {
  if (handle == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult allowed = forbid_unsafe_call(call.machine);
  if (allowed != CUDA_SUCCESS) return allowed;
  if (!is_device_image(image)) return CUDA_ERROR_INVALID_IMAGE;
  *handle = call.machine.modules.add(std::make_shared<Module>(Module{call.context}));
  return CUDA_SUCCESS;
}

bool launchable(Extent grid, Extent block, unsigned shared_bytes) {
  constexpr unsigned kMostThreads = 1024, kMostGridY = 65535, kMostShared = 49152;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  return grid.x > 0 && grid.x <= 2147483647u && grid.y > 0 && grid.y <= kMostGridY && grid.z > 0 &&
         grid.z <= kMostGridY && threads > 0 && threads <= kMostThreads && block.z <= 64 && shared_bytes <= kMostShared;
}

}  // namespace

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  return entry("cuModuleLoadData", Needs::context, [&](Call& call) { return load(call, module, image); });
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*, void**) {
  return entry("cuModuleLoadDataEx", Needs::context, [&](Call& call) { return load(call, module, image); });
}

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  return entry("cuModuleUnload", Needs::context, [&](Call& call) {
    if (call.machine.modules.take(module) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    call.machine.functions.remove_if([&](const Function& function) { return function.module == module; });
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* handle, CUmodule module, const char* name) {
  return entry("cuModuleGetFunction", Needs::context, [&](Call& call) {
    if (handle == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto owner = call.machine.modules.find(module);
    if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    auto kernel = call.machine.kernels.find(name);
    if (kernel == call.machine.kernels.end()) return CUDA_ERROR_NOT_FOUND;
    *handle = call.machine.functions.add(std::make_shared<Function>(Function{owner->context, module, kernel->second}));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLaunchKernel(CUfunction handle, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                unsigned int shared_bytes, CUstream stream_handle, void** arguments, void** extra) {
  return entry("cuLaunchKernel", Needs::context, [&](Call& call) {
    auto function = call.machine.functions.find(handle);
    auto stream = find_stream(call.machine, stream_handle, call.context);
    if (function == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    // A kernel belongs to the context that loaded it, and so must the stream and the thread.
    if (function->context != call.context || stream->context() != call.context) return CUDA_ERROR_INVALID_HANDLE;
    if (extra != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const Extent grid{grid_x, grid_y, grid_z};
    const Extent block{block_x, block_y, block_z};
    if (!launchable(grid, block, shared_bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (arguments == nullptr && !function->entry->argument_sizes.empty()) return CUDA_ERROR_INVALID_VALUE;
    return enqueue(call.machine, *stream, launch_of(function->entry, grid, block, arguments),
                   function->entry->name.c_str());
  });
}
