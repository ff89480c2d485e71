// The entry points of the CUDA driver that are used here. They are looked up at run time, so a host without a driver
// can load this module, and the module can say that there is no driver.
#pragma once

#include <cuda.h>

#include <string>
#include <string_view>

namespace col::nccl_backend {

// Members have the names of cuda.h without the cu. Thread safe, as the driver is.
struct CudaDriver {
  // Loads libcuda.so.1 and initialises it. Throws unavailable: no driver, too old a driver, no device.
  CudaDriver();

  decltype(&::cuInit) Init;
  decltype(&::cuDriverGetVersion) DriverGetVersion;
  decltype(&::cuGetErrorName) GetErrorName;
  decltype(&::cuGetErrorString) GetErrorString;
  decltype(&::cuDeviceGetCount) DeviceGetCount;
  decltype(&::cuDeviceGet) DeviceGet;
  decltype(&::cuDeviceGetName) DeviceGetName;
  decltype(&::cuDeviceGetPCIBusId) DeviceGetPCIBusId;
  decltype(&::cuDeviceGetAttribute) DeviceGetAttribute;
  decltype(&::cuDevicePrimaryCtxRetain) DevicePrimaryCtxRetain;
  decltype(&::cuDevicePrimaryCtxRelease) DevicePrimaryCtxRelease;
  decltype(&::cuCtxGetCurrent) CtxGetCurrent;
  decltype(&::cuCtxGetDevice) CtxGetDevice;
  decltype(&::cuCtxGetStreamPriorityRange) CtxGetStreamPriorityRange;
  decltype(&::cuCtxPushCurrent) CtxPushCurrent;
  decltype(&::cuCtxPopCurrent) CtxPopCurrent;
  decltype(&::cuStreamCreateWithPriority) StreamCreateWithPriority;
  decltype(&::cuStreamDestroy) StreamDestroy;
  decltype(&::cuStreamWaitEvent) StreamWaitEvent;
  decltype(&::cuStreamIsCapturing) StreamIsCapturing;
  decltype(&::cuEventCreate) EventCreate;
  decltype(&::cuEventDestroy) EventDestroy;
  decltype(&::cuEventRecord) EventRecord;
  decltype(&::cuEventQuery) EventQuery;
  decltype(&::cuEventElapsedTime) EventElapsedTime;
  decltype(&::cuMemAlloc) MemAlloc;
  decltype(&::cuMemFree) MemFree;
  decltype(&::cuMemHostAlloc) MemHostAlloc;
  decltype(&::cuMemFreeHost) MemFreeHost;
  decltype(&::cuMemcpyAsync) MemcpyAsync;
  decltype(&::cuMemsetD8Async) MemsetD8Async;
  decltype(&::cuMemsetD32Async) MemsetD32Async;
  decltype(&::cuPointerGetAttribute) PointerGetAttribute;
  decltype(&::cuModuleLoadData) ModuleLoadData;
  decltype(&::cuModuleUnload) ModuleUnload;
  decltype(&::cuModuleGetFunction) ModuleGetFunction;
  decltype(&::cuLaunchKernel) LaunchKernel;
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
