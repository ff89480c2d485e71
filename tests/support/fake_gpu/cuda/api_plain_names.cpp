// The names without a suffix, which the driver keeps for programs built long ago.
//
// Where only the name changed they do the same. Where the type of an address or a size changed, a program of today that
// finds the old name calls it with the wrong types; the driver would read half an address, the stand-in refuses.
#include <cstdio>

#include "support/fake_gpu/cuda/entry.hpp"

using namespace fake_gpu;

#undef cuDeviceGetUuid
#undef cuDevicePrimaryCtxRelease
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuStreamDestroy
#undef cuEventDestroy
#undef cuEventElapsedTime
#undef cuMemHostRegister

namespace {

CUresult refuse(const char* name) {
  return entry(name, Needs::nothing, [&](Call&) {
    std::fprintf(stderr, "fake_gpu: %s is the interface of CUDA 3.1; find the name with its suffix\n", name);
    return CUDA_ERROR_NOT_SUPPORTED;
  });
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}
CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  return cuCtxPushCurrent_v2(context);
}
CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  return cuCtxPopCurrent_v2(context);
}
CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  return cuStreamDestroy_v2(stream);
}
CUresult CUDAAPI cuEventDestroy(CUevent event) {
  return cuEventDestroy_v2(event);
}
CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}
CUresult CUDAAPI cuMemHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return cuMemHostRegister_v2(pointer, bytes, flags);
}

CUresult fake_gpu_plain_total_mem() __asm__("cuDeviceTotalMem");
CUresult fake_gpu_plain_total_mem() {
  return refuse("cuDeviceTotalMem");
}
CUresult fake_gpu_plain_get_info() __asm__("cuMemGetInfo");
CUresult fake_gpu_plain_get_info() {
  return refuse("cuMemGetInfo");
}
CUresult fake_gpu_plain_alloc() __asm__("cuMemAlloc");
CUresult fake_gpu_plain_alloc() {
  return refuse("cuMemAlloc");
}
CUresult fake_gpu_plain_free() __asm__("cuMemFree");
CUresult fake_gpu_plain_free() {
  return refuse("cuMemFree");
}
CUresult fake_gpu_plain_range() __asm__("cuMemGetAddressRange");
CUresult fake_gpu_plain_range() {
  return refuse("cuMemGetAddressRange");
}
CUresult fake_gpu_plain_to_host() __asm__("cuMemcpyDtoHAsync");
CUresult fake_gpu_plain_to_host() {
  return refuse("cuMemcpyDtoHAsync");
}
CUresult fake_gpu_plain_to_device() __asm__("cuMemcpyHtoDAsync");
CUresult fake_gpu_plain_to_device() {
  return refuse("cuMemcpyHtoDAsync");
}
CUresult fake_gpu_plain_on_device() __asm__("cuMemcpyDtoDAsync");
CUresult fake_gpu_plain_on_device() {
  return refuse("cuMemcpyDtoDAsync");
}
CUresult fake_gpu_plain_begin() __asm__("cuStreamBeginCapture");
CUresult fake_gpu_plain_begin() {
  return refuse("cuStreamBeginCapture");
}

}  // extern "C"
