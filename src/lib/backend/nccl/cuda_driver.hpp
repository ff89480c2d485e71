// The entry points of the CUDA driver that are used here. They are looked up at run time, so a host without a driver
// can load this module, and the module can say that there is no driver.
#pragma once

#include <cuda.h>

#include <string>
#include <string_view>

#include "backend/nccl/shared_library.hpp"

namespace col::nccl_backend {

// Members have the names of cuda.h without the cu. Thread safe, as the driver is.
struct CudaDriver {
  // Loads libcuda.so.1 and initialises it. Throws unavailable: no driver, too old a driver, no device.
  CudaDriver();

  const SharedLibrary library{"CUDA driver", {"libcuda.so.1"}};
  // If a function has several versions, the name is that of the version in cuda.h.
  decltype(&::cuInit) Init = library.find("cuInit");
  decltype(&::cuDriverGetVersion) DriverGetVersion = library.find("cuDriverGetVersion");
  decltype(&::cuGetErrorName) GetErrorName = library.find("cuGetErrorName");
  decltype(&::cuGetErrorString) GetErrorString = library.find("cuGetErrorString");
  decltype(&::cuDeviceGetCount) DeviceGetCount = library.find("cuDeviceGetCount");
  decltype(&::cuDeviceGet) DeviceGet = library.find("cuDeviceGet");
  decltype(&::cuDeviceGetName) DeviceGetName = library.find("cuDeviceGetName");
  decltype(&::cuDeviceGetPCIBusId) DeviceGetPCIBusId = library.find("cuDeviceGetPCIBusId");
  decltype(&::cuDeviceGetUuid_v2) DeviceGetUuid = library.find("cuDeviceGetUuid_v2");
  decltype(&::cuDeviceGetAttribute) DeviceGetAttribute = library.find("cuDeviceGetAttribute");
  decltype(&::cuDevicePrimaryCtxRetain) DevicePrimaryCtxRetain = library.find("cuDevicePrimaryCtxRetain");
  decltype(&::cuDevicePrimaryCtxRelease) DevicePrimaryCtxRelease = library.find("cuDevicePrimaryCtxRelease_v2");
  decltype(&::cuDevicePrimaryCtxGetState) DevicePrimaryCtxGetState = library.find("cuDevicePrimaryCtxGetState");
  decltype(&::cuCtxGetCurrent) CtxGetCurrent = library.find("cuCtxGetCurrent");
  decltype(&::cuCtxGetDevice) CtxGetDevice = library.find("cuCtxGetDevice");
  decltype(&::cuCtxGetStreamPriorityRange) CtxGetStreamPriorityRange = library.find("cuCtxGetStreamPriorityRange");
  decltype(&::cuCtxPushCurrent) CtxPushCurrent = library.find("cuCtxPushCurrent_v2");
  decltype(&::cuCtxPopCurrent) CtxPopCurrent = library.find("cuCtxPopCurrent_v2");
  decltype(&::cuStreamCreateWithPriority) StreamCreateWithPriority = library.find("cuStreamCreateWithPriority");
  decltype(&::cuStreamDestroy) StreamDestroy = library.find("cuStreamDestroy_v2");
  decltype(&::cuStreamQuery) StreamQuery = library.find("cuStreamQuery");
  decltype(&::cuStreamWaitEvent) StreamWaitEvent = library.find("cuStreamWaitEvent");
  decltype(&::cuStreamIsCapturing) StreamIsCapturing = library.find("cuStreamIsCapturing");
  decltype(&::cuThreadExchangeStreamCaptureMode) ThreadExchangeStreamCaptureMode =
      library.find("cuThreadExchangeStreamCaptureMode");
  decltype(&::cuEventCreate) EventCreate = library.find("cuEventCreate");
  decltype(&::cuEventDestroy) EventDestroy = library.find("cuEventDestroy_v2");
  decltype(&::cuEventRecord) EventRecord = library.find("cuEventRecord");
  decltype(&::cuEventQuery) EventQuery = library.find("cuEventQuery");
  decltype(&::cuEventElapsedTime) EventElapsedTime =
      library.find("cuEventElapsedTime");  // drivers before 12.8 have no other
  decltype(&::cuMemAlloc) MemAlloc = library.find("cuMemAlloc_v2");
  decltype(&::cuMemFree) MemFree = library.find("cuMemFree_v2");
  decltype(&::cuMemHostAlloc) MemHostAlloc = library.find("cuMemHostAlloc");
  decltype(&::cuMemFreeHost) MemFreeHost = library.find("cuMemFreeHost");
  decltype(&::cuMemcpyAsync) MemcpyAsync = library.find("cuMemcpyAsync");
  decltype(&::cuMemsetD8Async) MemsetD8Async = library.find("cuMemsetD8Async");
  decltype(&::cuMemsetD32Async) MemsetD32Async = library.find("cuMemsetD32Async");
  decltype(&::cuPointerGetAttribute) PointerGetAttribute = library.find("cuPointerGetAttribute");
  decltype(&::cuModuleLoadData) ModuleLoadData = library.find("cuModuleLoadData");
  decltype(&::cuModuleUnload) ModuleUnload = library.find("cuModuleUnload");
  decltype(&::cuModuleGetFunction) ModuleGetFunction = library.find("cuModuleGetFunction");
  decltype(&::cuLaunchKernel) LaunchKernel = library.find("cuLaunchKernel");
  // From CUDA 12.5 on; null before. The type is written out, because older headers do not declare it.
  CUresult(CUDAAPI* CtxRecordEvent)(CUcontext context, CUevent event) = nullptr;

  int devices = 0;  // at least 1
  int version = 0;  // the CUDA version of the driver: 13000 is 13.0

  // "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
  std::string describe(CUresult result) const;
  // Throws if `result` is an error: resource for a lack of memory, unavailable for what this device or driver cannot
  // do, otherwise io. `doing` says what failed, as in "cannot copy to the device".
  void check(CUresult result, std::string_view doing) const;
};

}  // namespace col::nccl_backend
