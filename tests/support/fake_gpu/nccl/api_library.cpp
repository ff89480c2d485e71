// Entry points: version, identities, errors, groups, memory.
#include "support/fake_gpu/cuda/work.hpp"
#include "support/fake_gpu/nccl/group.hpp"
#include "support/fake_gpu/nccl/library.hpp"
#include "support/fake_gpu/nccl/registry.hpp"

using namespace fake_nccl;

ncclResult_t ncclGetVersion(int* number) {
  return entry("ncclGetVersion", 0, [&] {
    require(number != nullptr, "the version's address is null");
    *number = version();
    return ncclSuccess;
  });
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return entry("ncclGetUniqueId", 0, [&] {
    require(id != nullptr, "the identity's address is null");
    make_identity(*id);
    return ncclSuccess;
  });
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  return last_error();
}

ncclResult_t ncclGroupStart() {
  return entry("ncclGroupStart", 0, [] {
    start_group();
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupEnd() {
  return entry("ncclGroupEnd", 0, [] { return end_group(); });
}

ncclResult_t ncclMemAlloc(void** pointer, size_t bytes) {
  return entry("ncclMemAlloc", 21900, [&] {
    require(pointer != nullptr && bytes > 0, "nothing to allocate");
    require_cuda(fake_gpu_start(), "no driver");
    uint64_t address = 0;
    require_cuda(fake_gpu_allocate(fake_gpu_current_device(), bytes, &address), "no memory");
    *pointer = reinterpret_cast<void*>(address);
    std::lock_guard lock(registry().mutex);
    registry().memory[*pointer] = bytes;
    return ncclSuccess;
  });
}

ncclResult_t ncclMemFree(void* pointer) {
  return entry("ncclMemFree", 21900, [&] {
    {
      std::lock_guard lock(registry().mutex);
      require(registry().memory.erase(pointer) == 1, "ncclMemAlloc did not return this address");
    }
    require_cuda(fake_gpu_free(reinterpret_cast<uint64_t>(pointer)), "the memory is gone");
    return ncclSuccess;
  });
}
