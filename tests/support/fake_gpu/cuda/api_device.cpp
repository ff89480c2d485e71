// Entry points: initialisation and devices.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "support/fake_gpu/cuda/entry.hpp"
#include "support/fake_gpu/cuda/module.hpp"

using namespace fake_gpu;

namespace {

bool valid(const Machine& machine, CUdevice device) {
  return device >= 0 && device < static_cast<int>(machine.devices.size());
}

// Those of a device of compute capability 9.0, as far as programs ask for them.
int attribute_of(const Machine& machine, CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 49152;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 132;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 3;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return 0;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 50 << 20;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return machine.devices[device].physical + 1;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

CUresult CUDAAPI cuInit(unsigned int flags) {
  CUresult result = entry("cuInit", Needs::nothing, [&](Call& call) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (call.machine.initialized) return CUDA_SUCCESS;
    const CUresult made = make_devices(call.machine);
    if (made != CUDA_SUCCESS) return made;
    call.machine.process = getpid();
    call.machine.initialized = true;
    call.lock.unlock();
    load_kernels_of_environment();
    return CUDA_SUCCESS;
  });
  return result;
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  return entry("cuDriverGetVersion", Needs::nothing, [&](Call& call) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = call.machine.driver_version;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return entry("cuDeviceGetCount", Needs::driver, [&](Call& call) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(call.machine.devices.size());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return entry("cuDeviceGet", Needs::driver, [&](Call& call) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(call.machine, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  return entry("cuDeviceGetName", Needs::driver, [&](Call& call) {
    if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(call.machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(name, length, "fake GPU %d", call.machine.devices[device].physical);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return entry("cuDeviceGetUuid_v2", Needs::driver, [&](Call& call) {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(call.machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    std::memset(uuid->bytes, 0x5F, sizeof uuid->bytes);
    uuid->bytes[0] = static_cast<char>(call.machine.devices[device].physical + 1);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  return entry("cuDeviceGetPCIBusId", Needs::driver, [&](Call& call) {
    if (id == nullptr || length < 13) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(call.machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(id, length, "0000:%02X:00.0", call.machine.devices[device].physical + 1);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return entry("cuDeviceTotalMem_v2", Needs::driver, [&](Call& call) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(call.machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = call.machine.devices[device].memory->limit();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return entry("cuDeviceGetAttribute", Needs::driver, [&](Call& call) {
    if (value == nullptr || attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(call.machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute_of(call.machine, attribute, device);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return entry("cuDeviceCanAccessPeer", Needs::driver, [&](Call& call) {
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(call.machine, device) || !valid(call.machine, peer)) return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer && number_setting("FAKE_GPU_PEER", 1) != 0 ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return entry("cuDevicePrimaryCtxRetain", Needs::driver, [&](Call& call) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!valid(call.machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    return retain_primary(call.machine, device, context);
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return entry("cuDevicePrimaryCtxRelease_v2", Needs::driver, [&](Call& call) {
    if (!valid(call.machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    return release_primary(call.machine, call.lock, device);
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
