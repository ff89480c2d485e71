// Entry points: what is known of an address.
#include <cstring>

#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

namespace {

struct Facts {
  CUmemorytype type;
  int device;
  CUcontext context;
  uint64_t start;
  size_t bytes;
  uint64_t id;
};

std::optional<Facts> facts_of(const Machine& machine, uint64_t address) {
  const int device = machine.device_of(address);
  if (device >= 0) {
    auto allocation = machine.devices[device].memory->find(address);
    if (!allocation) return std::nullopt;
    const auto& primary = machine.devices[device].primary;
    return Facts{CU_MEMORYTYPE_DEVICE, device,        primary == nullptr ? nullptr : primary->handle, allocation->start,
                 allocation->bytes,    allocation->id};
  }
  const HostRange* range = machine.host.find(address);
  if (range == nullptr) return std::nullopt;
  return Facts{CU_MEMORYTYPE_HOST, range->context->device, range->context->handle,
               range->start,       range->bytes,           range->id};
}

template <typename T>
CUresult put(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult answer(void* to, CUpointer_attribute attribute, uint64_t address, const Facts& facts) {
  const bool on_device = facts.type == CU_MEMORYTYPE_DEVICE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(to, facts.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(to, static_cast<unsigned>(facts.type));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(to, static_cast<CUdeviceptr>(address));
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (on_device) return CUDA_ERROR_INVALID_VALUE;
      return put(to, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(to, static_cast<unsigned>(0));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(to, static_cast<unsigned long long>(facts.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(to, static_cast<unsigned>(0));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(to, facts.device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(to, static_cast<CUdeviceptr>(facts.start));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(to, facts.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(to, static_cast<unsigned>(1));
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// What the call for several attributes writes when the driver does not know the address.
CUresult answer_unknown(void* to, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(to, static_cast<unsigned>(0));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(to, -2);
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(to, static_cast<uint64_t>(0));
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return entry("cuPointerGetAttribute", Needs::driver, [&](Call& call) {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto facts = facts_of(call.machine, pointer);
    return facts ? answer(data, attribute, pointer, *facts) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                        CUdeviceptr pointer) {
  return entry("cuPointerGetAttributes", Needs::driver, [&](Call& call) {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto facts = facts_of(call.machine, pointer);
    for (unsigned i = 0; i < count; ++i) {
      CUresult result =
          facts ? answer(data[i], attributes[i], pointer, *facts) : answer_unknown(data[i], attributes[i]);
      // Device memory has no host address: here that is a null pointer, not an error.
      if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && result != CUDA_SUCCESS) {
        result = put(data[i], static_cast<void*>(nullptr));
      }
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  });
}
