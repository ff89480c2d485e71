#include "group/gpu/gpus.hpp"

#include <dlfcn.h>

namespace col::group {

DeviceMemory& gpus() {
  BackendFactory* const factory = find_backend(to_string(Backend::nccl));
  if (factory == nullptr) throw Error(ErrorCode::unavailable, "this build of col has no backend for GPUs");
  return factory->device_memory();
}

std::optional<int> current_gpu() noexcept {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return std::nullopt;
  ::dlclose(driver);  // the program's own reference keeps it
  // cuCtxGetCurrent: 0 and a context when there is one, an error before the driver was started.
  using GetCurrent = int(void** context);
  auto* const get_current = reinterpret_cast<GetCurrent*>(::dlsym(driver, "cuCtxGetCurrent"));
  void* context = nullptr;
  if (get_current == nullptr || get_current(&context) != 0 || context == nullptr) return std::nullopt;
  try {
    return gpus().current();
  } catch (const Error&) {  // the module is missing, or refuses the driver: no GPU for us
    return std::nullopt;
  }
}

}  // namespace col::group
