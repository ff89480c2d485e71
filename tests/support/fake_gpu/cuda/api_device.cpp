// Entry points: initialisation, devices, and the current context.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"
#include "support/fake_gpu/cuda/module.hpp"

using namespace fake_gpu;

// ---- Initialisation and devices

namespace {

bool valid(const Machine& machine, CUdevice device) {
  return device >= 0 && device < static_cast<int>(machine.devices.size());
}

}  // namespace

CUresult CUDAAPI cuInit(unsigned int flags) {
  return entry("cuInit", Needs::nothing, [&](Call& call) {
    fail_if(flags != 0, CUDA_ERROR_INVALID_VALUE);
    if (call.machine.initialized) return;
    fail_on(make_devices(call.machine));
    call.machine.start();
    call.lock.unlock();
    load_kernels_of_environment();
  });
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  return entry("cuDriverGetVersion", Needs::nothing, [&](Call& call) {
    fail_if(version == nullptr, CUDA_ERROR_INVALID_VALUE);
    *version = call.machine.driver_version;
  });
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return entry("cuDeviceGetCount", Needs::driver, [&](Call& call) {
    fail_if(count == nullptr, CUDA_ERROR_INVALID_VALUE);
    *count = static_cast<int>(call.machine.devices.size());
  });
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return entry("cuDeviceGet", Needs::driver, [&](Call& call) {
    fail_if(device == nullptr, CUDA_ERROR_INVALID_VALUE);
    fail_if(!valid(call.machine, ordinal), CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
  });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  return entry("cuDeviceGetName", Needs::driver, [&](Call& call) {
    fail_if(name == nullptr || length <= 0, CUDA_ERROR_INVALID_VALUE);
    fail_if(!valid(call.machine, device), CUDA_ERROR_INVALID_DEVICE);
    std::snprintf(name, length, "fake GPU %d", call.machine.devices[device].physical);
  });
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  return entry("cuDeviceGetPCIBusId", Needs::driver, [&](Call& call) {
    fail_if(id == nullptr || length < 13, CUDA_ERROR_INVALID_VALUE);
    fail_if(!valid(call.machine, device), CUDA_ERROR_INVALID_DEVICE);
    // The parts of one GPU have one address.
    const bool parts = number_setting("FAKE_GPU_MIG", 0) != 0;
    std::snprintf(id, length, "0000:%02X:00.0", parts ? 1 : call.machine.devices[device].physical + 1);
  });
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* id, CUdevice device) {
  return entry("cuDeviceGetUuid_v2", Needs::driver, [&](Call& call) {
    fail_if(id == nullptr, CUDA_ERROR_INVALID_VALUE);
    fail_if(!valid(call.machine, device), CUDA_ERROR_INVALID_DEVICE);
    std::memset(id->bytes, 0xfa, sizeof id->bytes);
    id->bytes[0] = static_cast<char>(call.machine.devices[device].physical);
  });
}

// Those that programs ask for.
CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return entry("cuDeviceGetAttribute", Needs::driver, [&](Call& call) {
    fail_if(value == nullptr || attribute != CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, CUDA_ERROR_INVALID_VALUE);
    fail_if(!valid(call.machine, device), CUDA_ERROR_INVALID_DEVICE);
    *value = 50 << 20;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return entry("cuDevicePrimaryCtxRetain", Needs::driver, [&](Call& call) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(call.machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    return retain_primary(call.machine, device, context);
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  return entry("cuDevicePrimaryCtxGetState", Needs::driver, [&](Call& call) {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(call.machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    *flags = 0;
    *active = call.machine.devices[device].primary != nullptr ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return entry("cuDevicePrimaryCtxRelease_v2", Needs::driver, [&](Call& call) {
    if (!valid(call.machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    return release_primary(call.machine, call.lock, device);
  });
}

// ---- The current context

namespace {

bool known(const Machine& machine, CUcontext context) {
  return context == nullptr || machine.contexts.find(context) != nullptr;
}

}  // namespace

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  return entry("cuCtxGetCurrent", Needs::driver, [&](Call&) {
    fail_if(context == nullptr, CUDA_ERROR_INVALID_VALUE);
    *context = context_stack().empty() ? nullptr : context_stack().back();
  });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  return entry("cuCtxSetCurrent", Needs::driver, [&](Call& call) {
    fail_if(!known(call.machine, context), CUDA_ERROR_INVALID_CONTEXT);
    auto& stack = context_stack();
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
  });
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  return entry("cuCtxPushCurrent_v2", Needs::driver, [&](Call& call) {
    fail_if(!known(call.machine, context), CUDA_ERROR_INVALID_CONTEXT);
    context_stack().push_back(context);
  });
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  return entry("cuCtxPopCurrent_v2", Needs::driver, [&](Call&) {
    auto& stack = context_stack();
    fail_if(stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
  });
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return entry("cuCtxGetDevice", Needs::context, [&](Call& call) {
    fail_if(device == nullptr, CUDA_ERROR_INVALID_VALUE);
    *device = call.context->device;
  });
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return entry("cuCtxGetStreamPriorityRange", Needs::context, [&](Call&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = kGreatestPriority;
  });
}

CUresult CUDAAPI cuCtxSynchronize(void) {
  return entry("cuCtxSynchronize", Needs::context, [&](Call& call) {
    fail_on(forbid_wait_for_context(call.machine, *call.context));
    drain(call.machine, call.lock, *call.context, "cuCtxSynchronize");
    return call.context->broken;
  });
}
