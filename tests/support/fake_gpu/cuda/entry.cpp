#include "support/fake_gpu/cuda/entry.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/module.hpp"

namespace fake_gpu {
namespace {

constexpr long kMostDevices = 8;

// The devices that CUDA_VISIBLE_DEVICES leaves, in its order. As the driver does, it stops at the first entry that is
// not the number of a device. Names of the form GPU-… are not understood.
std::vector<int> visible_devices(long count) {
  std::vector<int> visible;
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (int i = 0; i < count; ++i) visible.push_back(i);
    return visible;
  }
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    char* end = nullptr;
    const long device = std::strtol(entry.c_str(), &end, 10);
    if (end == entry.c_str() || *end != '\0' || device < 0 || device >= count) break;
    visible.push_back(static_cast<int>(device));
  }
  return visible;
}

}  // namespace

CUresult make_devices(Machine& machine) {
  if (number_setting("FAKE_GPU_NO_DRIVER", 0) != 0) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  const long count = number_setting("FAKE_GPU_DEVICES", 1);
  if (count < 0 || count > kMostDevices) die("FAKE_GPU_DEVICES must be 0 to 8");
  const std::vector<int> visible = visible_devices(count);
  if (visible.empty()) return CUDA_ERROR_NO_DEVICE;
  const size_t limit = number_setting("FAKE_GPU_MEMORY", 512l << 20);
  const bool protect = number_setting("FAKE_GPU_PROTECT", 1) != 0;
  for (int physical : visible) {
    machine.devices.push_back({physical, std::make_unique<DeviceMemory>(limit, protect), nullptr});
  }
  return CUDA_SUCCESS;
}

std::vector<CUcontext>& context_stack() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

std::shared_ptr<Context> current_context(const Machine& machine) {
  const auto& stack = context_stack();
  return stack.empty() || stack.back() == nullptr ? nullptr : machine.contexts.find(stack.back());
}

CUresult retain_primary(Machine& machine, int device, CUcontext* handle) {
  auto& primary = machine.devices[device].primary;
  if (primary == nullptr) {
    const CUresult allowed = forbid_unsafe_call(machine);  // it allocates
    if (allowed != CUDA_SUCCESS) return allowed;
    auto context = std::make_shared<Context>();
    context->device = device;
    context->handle = machine.contexts.add(context);
    context->null_stream = std::make_shared<Stream>(context, CU_STREAM_DEFAULT, 0, true);
    primary = context;
  }
  ++primary->retained;
  *handle = primary->handle;
  return CUDA_SUCCESS;
}

CUresult release_primary(Machine& machine, Lock& lock, int device) {
  auto context = machine.devices[device].primary;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->retained > 1) {
    --context->retained;
    return CUDA_SUCCESS;
  }
  drain(machine, lock, *context, "the last release of a context waits for its streams, which");
  // Another thread may have retained it meanwhile.
  if (--context->retained > 0) return CUDA_SUCCESS;
  context->destroyed = true;
  machine.devices[device].primary = nullptr;
  for (const auto& stream : std::vector(context->streams)) stream->close();
  context->null_stream->close();
  context->null_stream = nullptr;
  auto of_context = [&](const auto& object) { return object.context.get() == context.get(); };
  machine.streams.remove_if([&](const Stream& stream) { return stream.context() == context; });
  machine.events.remove_if(of_context);
  machine.modules.remove_if(of_context);
  machine.functions.remove_if(of_context);
  machine.host.forget(*context);
  machine.devices[device].memory->free_all();
  return CUDA_SUCCESS;
}

CUresult enter(Call& call, const char* name, Needs needs) {
  if (auto code = call_log().enter(name)) return static_cast<CUresult>(*code);
  if (inside_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  // Looked at before the lock, which a child may have inherited locked.
  if (call.machine.lost) return CUDA_ERROR_NOT_INITIALIZED;
  call.lock = Lock(call.machine.mutex);
  if (needs == Needs::nothing) return CUDA_SUCCESS;
  if (!call.machine.initialized) return CUDA_ERROR_NOT_INITIALIZED;
  call.context = current_context(call.machine);
  if (needs == Needs::driver) return CUDA_SUCCESS;
  if (call.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (call.context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return call.context->broken;
}

}  // namespace fake_gpu
