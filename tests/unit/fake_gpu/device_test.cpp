// Devices, contexts, names and faults of the stand-in for the driver.
#include <dlfcn.h>

#include <set>
#include <string>

#include "unit/fake_gpu/session.hpp"

using namespace fake_gpu_test;

TEST_CASE("fake cuda: devices have names, identities and memory of their own") {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  CHECK(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  REQUIRE(count == 8);
  std::set<std::string> names, addresses;
  for (int i = 0; i < count; ++i) {
    CUdevice device;
    REQUIRE(cuDeviceGet(&device, i) == CUDA_SUCCESS);
    char name[100], address[20];
    CHECK(cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS);
    CHECK(std::string(name).find("fake") != std::string::npos);  // so that nothing passes for a result of a GPU
    CHECK(cuDeviceGetPCIBusId(address, sizeof address, device) == CUDA_SUCCESS);
    int cache = 0;
    CHECK(cuDeviceGetAttribute(&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device) == CUDA_SUCCESS);
    CHECK(cache == 50 << 20);
    names.insert(name);
    addresses.insert(address);
  }
  CHECK(names.size() == 8);
  CHECK(addresses.size() == 8);
  CUdevice none;
  CHECK(cuDeviceGet(&none, 8) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("fake cuda: a call that needs a context says when there is none") {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  CUcontext context = reinterpret_cast<CUcontext>(1);
  CHECK(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  CHECK(context == nullptr);
  CUdeviceptr pointer;
  CUstream stream;
  CHECK(cuMemAlloc(&pointer, 16) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuStreamCreateWithPriority(&stream, 0, 0) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuCtxPopCurrent(&context) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("fake cuda: contexts are counted, current per thread, and dead after the last release") {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  CUcontext first, second, other, popped;
  REQUIRE(cuDevicePrimaryCtxRetain(&first, 0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRetain(&second, 0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRetain(&other, 1) == CUDA_SUCCESS);
  CHECK(first == second);
  CHECK(first != other);
  CHECK(fake_gpu_alive("contexts") == 3);
  CHECK(cuCtxPushCurrent(first) == CUDA_SUCCESS);
  CHECK(cuCtxPushCurrent(other) == CUDA_SUCCESS);
  CUdevice device = -1;
  CHECK(cuCtxGetDevice(&device) == CUDA_SUCCESS);
  CHECK(device == 1);
  CHECK(cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
  CHECK(popped == other);
  CHECK(cuCtxGetDevice(&device) == CUDA_SUCCESS);
  CHECK(device == 0);

  CUresult elsewhere = CUDA_SUCCESS;
  std::thread([&] { elsewhere = cuCtxSynchronize(); }).join();
  CHECK(elsewhere == CUDA_ERROR_INVALID_CONTEXT);

  CHECK(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuDevicePrimaryCtxRelease(0) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuCtxPopCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRelease(1) == CUDA_SUCCESS);
  CHECK(fake_gpu_alive("contexts") == 0);
}

TEST_CASE("fake cuda: the last release lets go of everything in the context") {
  {
    OnDevice device(2);
    CUstream stream;
    CUevent event;
    CUdeviceptr pointer;
    void* pinned;
    REQUIRE(cuStreamCreateWithPriority(&stream, 0, 0) == CUDA_SUCCESS);
    REQUIRE(cuEventCreate(&event, 0) == CUDA_SUCCESS);
    REQUIRE(cuMemAlloc(&pointer, 100) == CUDA_SUCCESS);
    REQUIRE(cuMemHostAlloc(&pinned, 100, 0) == CUDA_SUCCESS);
    CHECK(fake_gpu_alive("streams") == 1);
    CHECK(fake_gpu_alive("events") == 1);
    CHECK(fake_gpu_alive("device_memory") == 1);
    CHECK(fake_gpu_alive("host_memory") == 1);
  }
  for (const char* what : {"streams", "events", "device_memory", "host_memory"}) CHECK(fake_gpu_alive(what) == 0);
}

TEST_CASE("fake cuda: an entry point fails when a test wants it, and calls are counted") {
  OnDevice device(0);
  fake_gpu_reset();
  fake_gpu_fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY, 2);
  CUdeviceptr first, second;
  CHECK(cuMemAlloc(&first, 16) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&second, 16) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAlloc(&second, 16) == CUDA_SUCCESS);
  CHECK(fake_gpu_calls("cuMemAlloc_v2") == 3);
  CHECK(fake_gpu_calls("cuMemFree_v2") == 0);
  CHECK(cuMemFree(first) == CUDA_SUCCESS);
  CHECK(cuMemFree(second) == CUDA_SUCCESS);
  fake_gpu_reset();
  CHECK(fake_gpu_calls("cuMemAlloc_v2") == 0);
}

TEST_CASE("fake cuda: a broken context answers every call with its error until it is made anew") {
  {
    OnDevice device(1);
    OwnStream stream;
    fake_gpu_break_context(1, CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr pointer;
    CHECK(cuMemAlloc(&pointer, 16) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cuCtxGetCurrent(reinterpret_cast<CUcontext*>(&pointer)) == CUDA_SUCCESS);
  }
  OnDevice device(1);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("fake cuda: errors have names") {
  const char* text = nullptr;
  CHECK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "CUDA_ERROR_OUT_OF_MEMORY");
  CHECK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "out of memory");
  CHECK(cuGetErrorName(static_cast<CUresult>(998), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}

TEST_CASE("fake cuda: dlsym finds the names of today, and none that takes an address of 32 bits") {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  for (const char* name : {"cuInit", "cuMemAlloc_v2", "cuStreamDestroy_v2", "cuEventElapsedTime",
                           "cuEventElapsedTime_v2", "cuGraphInstantiateWithFlags"}) {
    INFO(name);
    CHECK(dlsym(library, name) != nullptr);
  }
  CHECK(dlsym(library, "cuMemAlloc") == nullptr);
  dlclose(library);
}
