// The functions of libcuda.so.1 and libnccl.so.2 that the backend asks for, each of which returns at once: what a call
// then takes is what col itself takes of the host. They move nothing.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

int some_object;  // what every handle points to
void* const kHandle = &some_object;

int give(void** handle) {
  *handle = kHandle;
  return 0;
}
int name(char* text, int bytes) {
  std::strncpy(text, "idle", static_cast<std::size_t>(bytes));
  return 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// ---- CUDA: what answers

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuGetErrorName(int, const char** text) {
  *text = "none";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "none";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* text, int bytes, int) {
  return name(text, bytes);
}
int cuDeviceGetPCIBusId(char* text, int bytes, int) {
  return name(text, bytes);
}
int cuDeviceGetUuid_v2(char* id, int) {
  std::memset(id, 0, 16);
  return 0;
}
int cuDeviceGetAttribute(int* value, int, int) {
  *value = 1 << 20;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  return give(context);
}
int cuCtxGetCurrent(void** context) {
  return give(context);
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cuCtxGetStreamPriorityRange(int*, int* greatest) {
  *greatest = 0;
  return 0;
}
int cuStreamCreateWithPriority(void** stream, unsigned, int) {
  return give(stream);
}
int cuStreamIsCapturing(void*, int* status) {
  *status = 0;
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  return give(event);
}
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 0;
  return 0;
}
int cuMemAlloc_v2(std::uintptr_t* memory, std::size_t) {
  *memory = reinterpret_cast<std::uintptr_t>(kHandle);
  return 0;
}
int cuMemHostAlloc(void** memory, std::size_t, unsigned) {
  return give(memory);
}
int cuPointerGetAttribute(void* answer, int attribute, std::uintptr_t) {
  if (attribute == 7)  // the number of the allocation
    *static_cast<unsigned long long*>(answer) = 1;
  else
    *static_cast<int*>(answer) = 0;
  return 0;
}
int cuModuleLoadData(void** module, const void*) {
  return give(module);
}
int cuModuleGetFunction(void** function, void*, const char*) {
  return give(function);
}

// ---- NCCL: what answers

int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}
const char* ncclGetErrorString(int) {
  return "none";
}
const char* ncclGetLastError(void*) {
  return "";
}
int ncclGetUniqueId(void* id) {
  std::memset(id, 0, 128);
  return 0;
}
int ncclCommGetAsyncError(void*, int* error) {
  *error = 0;
  return 0;
}
int ncclMemAlloc(void** memory, std::size_t) {
  return give(memory);
}

// ---- What succeeds, and answers nothing

#define COL_IDLE(name) \
  int name() {         \
    return 0;          \
  }
COL_IDLE(cuInit)
COL_IDLE(cuDevicePrimaryCtxGetState)
COL_IDLE(cuDevicePrimaryCtxRelease_v2)
COL_IDLE(cuCtxPushCurrent_v2)
COL_IDLE(cuCtxPopCurrent_v2)
COL_IDLE(cuCtxRecordEvent)
COL_IDLE(cuStreamDestroy_v2)
COL_IDLE(cuStreamQuery)
COL_IDLE(cuStreamWaitEvent)
COL_IDLE(cuThreadExchangeStreamCaptureMode)
COL_IDLE(cuEventDestroy_v2)
COL_IDLE(cuEventRecord)
COL_IDLE(cuEventQuery)
COL_IDLE(cuMemFree_v2)
COL_IDLE(cuMemFreeHost)
COL_IDLE(cuMemcpyAsync)
COL_IDLE(cuMemsetD8Async)
COL_IDLE(cuMemsetD32Async)
COL_IDLE(cuModuleUnload)
COL_IDLE(cuLaunchKernel)
COL_IDLE(ncclCommInitRankConfig)
COL_IDLE(ncclCommSplit)
COL_IDLE(ncclCommRegister)
COL_IDLE(ncclCommDeregister)
COL_IDLE(ncclCommFinalize)
COL_IDLE(ncclCommDestroy)
COL_IDLE(ncclCommAbort)
COL_IDLE(ncclCommRevoke)
COL_IDLE(ncclRedOpCreatePreMulSum)
COL_IDLE(ncclRedOpDestroy)
COL_IDLE(ncclAllReduce)
COL_IDLE(ncclReduce)
COL_IDLE(ncclBroadcast)
COL_IDLE(ncclAllGather)
COL_IDLE(ncclReduceScatter)
COL_IDLE(ncclSend)
COL_IDLE(ncclRecv)
COL_IDLE(ncclGroupStart)
COL_IDLE(ncclGroupEnd)
COL_IDLE(ncclMemFree)
COL_IDLE(ncclCommWindowRegister)
COL_IDLE(ncclCommWindowDeregister)
COL_IDLE(ncclAlltoAll)
COL_IDLE(ncclGather)
COL_IDLE(ncclScatter)

}  // extern "C"
#pragma GCC visibility pop
