#include "support/fake_gpu/cuda/module.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"

namespace fake_gpu {

bool is_device_image(const void* image) {
  constexpr unsigned char kFatBinary[] = {0x50, 0xED, 0x55, 0xBA};
  constexpr unsigned char kElf[] = {0x7F, 'E', 'L', 'F'};
  return std::memcmp(image, kFatBinary, 4) == 0 || std::memcmp(image, kElf, 4) == 0;
}

void load_kernels_of_environment() {
  const std::string path = text_setting("FAKE_GPU_KERNELS", "");
  if (path.empty()) return;
  void* library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) die(std::string("FAKE_GPU_KERNELS: ") + dlerror());
  void* symbol = dlsym(library, "fake_gpu_kernels");
  if (symbol == nullptr) die("FAKE_GPU_KERNELS: " + path + " has no function fake_gpu_kernels");
  reinterpret_cast<void (*)()>(symbol)();
}

Work launch_of(std::shared_ptr<const KernelEntry> entry, Extent grid, Extent block, void** arguments) {
  auto copies = std::make_shared<std::vector<std::vector<std::max_align_t>>>();
  for (size_t i = 0; i < entry->argument_sizes.size(); ++i) {
    const size_t bytes = entry->argument_sizes[i];
    auto& copy = copies->emplace_back(bytes / sizeof(std::max_align_t) + 1);
    std::memcpy(copy.data(), arguments[i], bytes);
  }
  return [entry = std::move(entry), grid, block, copies] {
    // A graph runs this again: the kernel gets pointers to a fresh copy each time.
    auto own = *copies;
    std::vector<void*> pointers;
    for (auto& copy : own) pointers.push_back(copy.data());
    entry->kernel(grid, block, pointers.data());
  };
}

}  // namespace fake_gpu

using namespace fake_gpu;

extern "C" void fake_gpu_register_kernel(const char* name, Kernel kernel, const size_t* sizes, size_t arguments) {
  auto entry = std::make_shared<KernelEntry>(KernelEntry{name, kernel, {sizes, sizes + arguments}});
  Machine& all = machine();
  Lock lock(all.mutex);
  all.kernels[name] = std::move(entry);
}

extern "C" void fake_gpu_illegal_access(const char* text) {
  std::fprintf(stderr, "fake_gpu: illegal access: %s\n", text);
  throw WorkFault{CUDA_ERROR_ILLEGAL_ADDRESS};
}

// ---- Entry points: device images and kernel launches

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

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  return entry("cuModuleUnload", Needs::context, [&](Call& call) {
    if (call.machine.modules.take(module) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    call.machine.functions.remove_if([&](const Function& function) { return function.module == module; });
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* handle, CUmodule module, const char* name) {
  return entry("cuModuleGetFunction", Needs::context, [&](Call& call) {
    fail_if(handle == nullptr || name == nullptr, CUDA_ERROR_INVALID_VALUE);
    auto owner = call.machine.modules.find(module);
    fail_if(owner == nullptr, CUDA_ERROR_INVALID_HANDLE);
    auto kernel = call.machine.kernels.find(name);
    fail_if(kernel == call.machine.kernels.end(), CUDA_ERROR_NOT_FOUND);
    *handle = call.machine.functions.add(std::make_shared<Function>(Function{owner->context, module, kernel->second}));
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
