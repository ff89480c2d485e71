#include "support/fake_gpu/cuda/module.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

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

using fake_gpu::KernelEntry;

extern "C" void fake_gpu_register_kernel(const char* name, fake_gpu::Kernel kernel, const size_t* sizes,
                                         size_t arguments) {
  auto entry = std::make_shared<KernelEntry>(KernelEntry{name, kernel, {sizes, sizes + arguments}});
  fake_gpu::Machine& machine = fake_gpu::machine();
  fake_gpu::Lock lock(machine.mutex);
  machine.kernels[name] = std::move(entry);
}

extern "C" void fake_gpu_illegal_access(const char* text) {
  std::fprintf(stderr, "fake_gpu: illegal access: %s\n", text);
  throw fake_gpu::WorkFault{CUDA_ERROR_ILLEGAL_ADDRESS};
}
