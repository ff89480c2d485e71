// Entry points: memory of devices and page-locked memory of the host.
#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

namespace {

// Freeing waits for the device, as the driver does: a program that frees while an operation hangs, hangs too.
CUresult wait_before_free(Call& call, const char* what) {
  const CUresult allowed = forbid_unsafe_call(call.machine);
  if (allowed != CUDA_SUCCESS) return allowed;
  drain(call.machine, call.lock, *call.context, what);
  return call.context->broken;
}

DeviceMemory& memory(Call& call) {
  return *call.machine.devices[call.context->device].memory;
}

}  // namespace

CUresult CUDAAPI cuMemGetInfo(size_t* free, size_t* total) {
  return entry("cuMemGetInfo_v2", Needs::context, [&](Call& call) {
    if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *total = memory(call).limit();
    *free = *total - memory(call).used();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr* pointer, size_t bytes) {
  return entry("cuMemAlloc_v2", Needs::context, [&](Call& call) {
    if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const CUresult allowed = forbid_unsafe_call(call.machine);
    if (allowed != CUDA_SUCCESS) return allowed;
    auto address = memory(call).allocate(bytes);
    if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = *address;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemFree(CUdeviceptr pointer) {
  return entry("cuMemFree_v2", Needs::context, [&](Call& call) {
    if (pointer == 0) return CUDA_SUCCESS;
    DeviceMemory* owner = call.machine.memory_of(pointer);
    auto allocation = owner == nullptr ? std::nullopt : owner->find(pointer);
    if (!allocation || allocation->start != pointer) return CUDA_ERROR_INVALID_VALUE;
    const CUresult waited = wait_before_free(call, "cuMemFree waits for the device, which");
    if (waited != CUDA_SUCCESS) return waited;
    return owner->free(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  return entry("cuMemGetAddressRange_v2", Needs::context, [&](Call& call) {
    DeviceMemory* owner = call.machine.memory_of(pointer);
    auto allocation = owner == nullptr ? std::nullopt : owner->find(pointer);
    if (!allocation) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = allocation->start;
    if (bytes != nullptr) *bytes = allocation->bytes;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return entry("cuMemHostAlloc", Needs::context, [&](Call& call) {
    constexpr unsigned kKnown = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    const CUresult allowed = forbid_unsafe_call(call.machine);
    if (allowed != CUDA_SUCCESS) return allowed;
    *pointer = call.machine.host.allocate(bytes, call.context);
    return *pointer == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  return entry("cuMemFreeHost", Needs::context, [&](Call& call) {
    const HostRange* range = call.machine.host.find(reinterpret_cast<uint64_t>(pointer));
    if (range == nullptr || range->registered) return CUDA_ERROR_INVALID_VALUE;
    const CUresult waited = wait_before_free(call, "cuMemFreeHost waits for the device, which");
    if (waited != CUDA_SUCCESS) return waited;
    return call.machine.host.free(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuMemHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return entry("cuMemHostRegister_v2", Needs::context, [&](Call& call) {
    constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    const CUresult allowed = forbid_unsafe_call(call.machine);
    if (allowed != CUDA_SUCCESS) return allowed;
    if (call.machine.device_of(reinterpret_cast<uint64_t>(pointer)) >= 0) return CUDA_ERROR_INVALID_VALUE;
    return call.machine.host.add(pointer, bytes, call.context) ? CUDA_SUCCESS
                                                               : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  });
}

CUresult CUDAAPI cuMemHostUnregister(void* pointer) {
  return entry("cuMemHostUnregister", Needs::context, [&](Call& call) {
    const HostRange* range = call.machine.host.find(reinterpret_cast<uint64_t>(pointer));
    if (range == nullptr || !range->registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    const CUresult waited = wait_before_free(call, "cuMemHostUnregister waits for the device, which");
    if (waited != CUDA_SUCCESS) return waited;
    return call.machine.host.remove(pointer) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  });
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr* pointer, void* host, unsigned int flags) {
  return entry("cuMemHostGetDevicePointer_v2", Needs::context, [&](Call& call) {
    const uint64_t address = reinterpret_cast<uint64_t>(host);
    if (pointer == nullptr || flags != 0 || call.machine.host.find(address) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pointer = address;
    return CUDA_SUCCESS;
  });
}
