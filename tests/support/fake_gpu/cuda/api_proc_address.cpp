// Entry point: functions by name and version.
#include <dlfcn.h>

#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

namespace {

struct Version {
  const char* name;
  int since;
  const char* symbol;
};

// Functions whose symbol is not their name, the newest first.
constexpr Version kVersions[] = {
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2"},
    {"cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2"},
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2"},
    {"cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"},
    {"cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"},
    {"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
    {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2"},
    {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
    {"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
    {"cuEventDestroy", 4000, "cuEventDestroy_v2"},
    {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
    {"cuEventElapsedTime", 2000, "cuEventElapsedTime"},
    {"cuMemGetInfo", 3020, "cuMemGetInfo_v2"},
    {"cuMemAlloc", 3020, "cuMemAlloc_v2"},
    {"cuMemFree", 3020, "cuMemFree_v2"},
    {"cuMemGetAddressRange", 3020, "cuMemGetAddressRange_v2"},
    {"cuMemHostGetDevicePointer", 3020, "cuMemHostGetDevicePointer_v2"},
    {"cuMemHostRegister", 6050, "cuMemHostRegister_v2"},
    {"cuMemcpyHtoD", 3020, "cuMemcpyHtoD_v2"},
    {"cuMemcpyDtoH", 3020, "cuMemcpyDtoH_v2"},
    {"cuMemcpyDtoD", 3020, "cuMemcpyDtoD_v2"},
    {"cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2"},
    {"cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2"},
    {"cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2"},
    {"cuMemsetD8", 3020, "cuMemsetD8_v2"},
};

// The symbol of the name as of a version; null when every version is newer; the name itself when it never changed.
const char* symbol_of(const std::string& name, int version) {
  bool known = false;
  for (const Version& entry : kVersions) {
    if (name != entry.name) continue;
    if (entry.since <= version) return entry.symbol;
    known = true;
  }
  return known ? nullptr : name.c_str();
}

void* find_here(const char* symbol) {
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&find_here), &self);
  void* library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  void* found = dlsym(library, symbol);
  dlclose(library);
  return found;
}

}  // namespace

CUresult CUDAAPI cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status) {
  return entry("cuGetProcAddress_v2", Needs::nothing, [&](Call& call) {
    if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (version > call.machine.driver_version) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    // Names carry no suffix here.
    const std::string wanted = name;
    const bool suffixed = wanted.size() > 3 && wanted.compare(wanted.size() - 3, 2, "_v") == 0;
    const char* symbol = symbol_of(wanted, version);
    *function = symbol == nullptr || suffixed ? nullptr : find_here(symbol);
    if (status != nullptr) {
      *status = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                : symbol == nullptr  ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  });
}
