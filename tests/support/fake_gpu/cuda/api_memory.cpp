// Entry points: memory of devices, page-locked memory of the host, and what is known of an address.
#include "support/fake_gpu/cuda/capture.hpp"
#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

// ---- Memory

namespace {

// Allocating may wait for the device, and the driver does not say when.
void wait_before_allocation(Call& call, const char* what) {
  fail_on(forbid_unsafe_call(call.machine));
  if (!harsh()) return;
  drain(call.machine, call.lock, *call.context, what);
  fail_on(call.context->broken);
}

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

CUresult CUDAAPI cuMemAlloc(CUdeviceptr* pointer, size_t bytes) {
  return entry("cuMemAlloc_v2", Needs::context, [&](Call& call) {
    fail_if(pointer == nullptr || bytes == 0, CUDA_ERROR_INVALID_VALUE);
    wait_before_allocation(call, "cuMemAlloc waits for the device, which");
    auto address = memory(call).allocate(bytes);
    fail_if(!address, CUDA_ERROR_OUT_OF_MEMORY);
    *pointer = *address;
  });
}

CUresult CUDAAPI cuMemFree(CUdeviceptr pointer) {
  return entry("cuMemFree_v2", Needs::context, [&](Call& call) {
    if (pointer == 0) return CUDA_SUCCESS;
    DeviceMemory* owner = call.machine.memory_of(pointer);
    auto allocation = owner == nullptr ? std::nullopt : owner->find(pointer);
    if (!allocation || allocation->start != pointer) return CUDA_ERROR_INVALID_VALUE;
    fail_on(wait_before_free(call, "cuMemFree waits for the device, which"));
    return owner->free(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return entry("cuMemHostAlloc", Needs::context, [&](Call& call) {
    constexpr unsigned kKnown = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    wait_before_allocation(call, "cuMemHostAlloc waits for the device, which");
    *pointer = call.machine.host.allocate(bytes, call.context);
    return *pointer == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  return entry("cuMemFreeHost", Needs::context, [&](Call& call) {
    fail_if(call.machine.host.find(reinterpret_cast<uint64_t>(pointer)) == nullptr, CUDA_ERROR_INVALID_VALUE);
    fail_on(wait_before_free(call, "cuMemFreeHost waits for the device, which"));
    return call.machine.host.free(pointer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

// ---- What is known of an address

namespace {

struct Facts {
  CUmemorytype type;
  int device;
  CUcontext context;
  uint64_t number;
};

std::optional<Facts> facts_of(const Machine& machine, uint64_t address) {
  const int device = machine.device_of(address);
  if (device >= 0) {
    const auto allocation = machine.devices[device].memory->find(address);
    if (!allocation) return std::nullopt;
    const auto& primary = machine.devices[device].primary;
    return Facts{CU_MEMORYTYPE_DEVICE, device, primary == nullptr ? nullptr : primary->handle, allocation->number};
  }
  const HostRange* range = machine.host.find(address);
  if (range == nullptr) return std::nullopt;
  return Facts{CU_MEMORYTYPE_HOST, range->context->device, range->context->handle, range->number};
}

}  // namespace

// Those that programs ask for.
CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return entry("cuPointerGetAttribute", Needs::driver, [&](Call& call) {
    auto facts = facts_of(call.machine, pointer);
    fail_if(data == nullptr || !facts, CUDA_ERROR_INVALID_VALUE);
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        *static_cast<CUcontext*>(data) = facts->context;
        return;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned*>(data) = facts->type;
        return;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(data) = facts->device;
        return;
      case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *static_cast<unsigned long long*>(data) = facts->number;
        return;
      default:
        fail_on(CUDA_ERROR_INVALID_VALUE);
    }
  });
}
