#include "backend/nccl/cuda_driver.hpp"

#include <fmt/format.h>

#include <col/error.hpp>

#include "backend/nccl/shared_library.hpp"

namespace col::nccl_backend {
namespace {

constexpr int kOldestDriver = 12000;
constexpr int kRecordsContexts = 12050;

}  // namespace

CudaDriver::CudaDriver() {
  const SharedLibrary library("CUDA driver", {"libcuda.so.1"});
  // If a function has several versions, the name is that of the version in cuda.h.
  library.bind("cuInit", Init);
  library.bind("cuDriverGetVersion", DriverGetVersion);
  library.bind("cuGetErrorName", GetErrorName);
  library.bind("cuGetErrorString", GetErrorString);
  library.bind("cuDeviceGetCount", DeviceGetCount);
  library.bind("cuDeviceGet", DeviceGet);
  library.bind("cuDeviceGetName", DeviceGetName);
  library.bind("cuDeviceGetPCIBusId", DeviceGetPCIBusId);
  library.bind("cuDeviceGetAttribute", DeviceGetAttribute);
  library.bind("cuDevicePrimaryCtxRetain", DevicePrimaryCtxRetain);
  library.bind("cuDevicePrimaryCtxRelease_v2", DevicePrimaryCtxRelease);
  library.bind("cuCtxGetCurrent", CtxGetCurrent);
  library.bind("cuCtxGetDevice", CtxGetDevice);
  library.bind("cuCtxGetStreamPriorityRange", CtxGetStreamPriorityRange);
  library.bind("cuCtxPushCurrent_v2", CtxPushCurrent);
  library.bind("cuCtxPopCurrent_v2", CtxPopCurrent);
  library.bind("cuStreamCreateWithPriority", StreamCreateWithPriority);
  library.bind("cuStreamDestroy_v2", StreamDestroy);
  library.bind("cuStreamWaitEvent", StreamWaitEvent);
  library.bind("cuStreamIsCapturing", StreamIsCapturing);
  library.bind("cuEventCreate", EventCreate);
  library.bind("cuEventDestroy_v2", EventDestroy);
  library.bind("cuEventRecord", EventRecord);
  library.bind("cuEventQuery", EventQuery);
  library.bind("cuEventElapsedTime", EventElapsedTime);  // drivers before 12.8 have no other
  library.bind("cuMemAlloc_v2", MemAlloc);
  library.bind("cuMemFree_v2", MemFree);
  library.bind("cuMemHostAlloc", MemHostAlloc);
  library.bind("cuMemFreeHost", MemFreeHost);
  library.bind("cuMemcpyAsync", MemcpyAsync);
  library.bind("cuMemsetD8Async", MemsetD8Async);
  library.bind("cuMemsetD32Async", MemsetD32Async);
  library.bind("cuPointerGetAttribute", PointerGetAttribute);
  library.bind("cuModuleLoadData", ModuleLoadData);
  library.bind("cuModuleUnload", ModuleUnload);
  library.bind("cuModuleGetFunction", ModuleGetFunction);
  library.bind("cuLaunchKernel", LaunchKernel);

  const CUresult started = Init(0);
  if (started == CUDA_ERROR_NO_DEVICE) throw Error(ErrorCode::unavailable, "the CUDA driver sees no device");
  if (started != CUDA_SUCCESS)
    throw Error(ErrorCode::unavailable, fmt::format("the CUDA driver does not start: {}", describe(started)));
  check(DriverGetVersion(&version), "cannot ask the CUDA driver for its version");
  if (version < kOldestDriver)
    throw Error(ErrorCode::unavailable,
                fmt::format("the CUDA driver is for CUDA {}.{}, and {}.{} is the oldest that serves; update it",
                            version / 1000, version % 1000 / 10, kOldestDriver / 1000, kOldestDriver % 1000 / 10));
  if (version >= kRecordsContexts) library.bind("cuCtxRecordEvent", CtxRecordEvent);
  check(DeviceGetCount(&devices), "cannot count the CUDA devices");
  if (devices < 1)
    throw Error(ErrorCode::unavailable, "the CUDA driver sees no device; see CUDA_VISIBLE_DEVICES and nvidia-smi");
}

std::string CudaDriver::describe(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return fmt::format("error {}", static_cast<int>(result));
  if (GetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) return name;
  return fmt::format("{} ({})", name, text);
}

void CudaDriver::check(CUresult result, std::string_view doing) const {
  switch (result) {
    case CUDA_SUCCESS:
      return;
    case CUDA_ERROR_OUT_OF_MEMORY:
      throw Error(ErrorCode::resource,
                  fmt::format("{}: {}; free memory of the device, or use smaller buffers", doing, describe(result)));
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
      throw Error(ErrorCode::unavailable,
                  fmt::format("{}: {}; the process was forked after CUDA had started (start it anew instead), or is "
                              "ending",
                              doing, describe(result)));
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      throw Error(ErrorCode::unavailable, fmt::format("{}: {}", doing, describe(result)));
    default:
      throw Error(ErrorCode::io, fmt::format("{}: {}; an earlier kernel of the program may be the cause "
                                             "(compute-sanitizer finds it), or the device (dmesg)",
                                             doing, describe(result)));
  }
}

}  // namespace col::nccl_backend
