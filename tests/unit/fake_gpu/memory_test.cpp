// Memory, copies and pointer attributes of the stand-in for the driver.
#include <atomic>
#include <numeric>

#include "unit/fake_gpu/session.hpp"

using namespace fake_gpu_test;

TEST_CASE("fake cuda: device memory is limited, given back, and never holds zeros at first") {
  OnDevice device(0);
  size_t free = 0, total = 0;
  REQUIRE(cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  CHECK(free == total);
  CUdeviceptr whole = 0, more = 0;
  REQUIRE(cuMemAlloc(&whole, total - 1000) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&more, 1001) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAlloc(&more, 1000) == CUDA_SUCCESS);
  CHECK(*static_cast<unsigned char*>(fake_gpu_host_view(more, 1)) != 0);
  CHECK(fake_gpu_alive("device_bytes") == total);
  CHECK(cuMemFree(whole + 512) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(whole) == CUDA_SUCCESS);
  CHECK(cuMemFree(whole) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(more) == CUDA_SUCCESS);
  CHECK(cuMemFree(0) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&more, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(fake_gpu_alive("device_memory") == 0);
}

TEST_CASE("fake cuda: copies go between host, devices and page-locked memory") {
  OnDevice other(1);
  Buffer<int> there(256);
  {
    OnDevice device(0);
    OwnStream stream;
    std::vector<int> values(256), back(256);
    std::iota(values.begin(), values.end(), 5);
    Buffer<int> here(256);
    CHECK(cuMemcpyHtoDAsync(here.address(), values.data(), 1024, stream) == CUDA_SUCCESS);
    CHECK(cuMemcpyDtoDAsync(there.address(), here.address(), 1024, stream) == CUDA_SUCCESS);
    CHECK(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(back.data()), there.address(), 1024, stream) == CUDA_SUCCESS);
    CHECK(back == values);
    CHECK(cuMemsetD8Async(here.address(), 0, 512, stream) == CUDA_SUCCESS);
    CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(here.values()[127] == 0);
    CHECK(here.values()[128] == 133);
    CHECK(cuMemsetD32Async(here.address() + 4, 0x01020304, 2, stream) == CUDA_SUCCESS);
    CHECK(cuMemsetD32Async(here.address() + 2, 1, 1, stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemsetD32Async(here.address(), 1, 257, stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(here.values()[0] == 0);
    CHECK(here.values()[1] == 0x01020304);
    CHECK(here.values()[2] == 0x01020304);
    CHECK(here.values()[3] == 0);
    void* pinned = nullptr;
    REQUIRE(cuMemHostAlloc(&pinned, 1024, CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS);
    CHECK(cuMemcpyDtoHAsync(pinned, here.address(), 1024, stream) == CUDA_SUCCESS);
    CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(static_cast<int*>(pinned)[255] == 260);
    CHECK(cuMemcpy(here.address(), reinterpret_cast<CUdeviceptr>(values.data()), 1024) == CUDA_SUCCESS);
    CHECK(here.values() == values);
    CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS);
    CHECK(cuMemFreeHost(pinned) == CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_CASE("fake cuda: a copy that leaves an allocation, or goes the other way, is refused") {
  OnDevice device(0);
  OwnStream stream;
  Buffer<char> data(100);
  char host[200] = {};
  CHECK(cuMemcpyHtoDAsync(data.address(), host, 101, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoDAsync(data.address() + 99, host, 2, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(host), host + 100, 4, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyDtoHAsync(data.get(), data.address(), 4, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD8Async(data.address(), 1, 101, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoDAsync(data.address(), host, 0, stream) == CUDA_SUCCESS);
  CHECK(cuMemcpyHtoDAsync(data.address(), host, 1, reinterpret_cast<CUstream>(0x1234)) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("fake cuda: page-locked memory is read when the copy runs, pageable memory when it is called") {
  OnDevice device(0);
  OwnStream stream;
  Buffer<int> first(1), second(1);
  void* pinned = nullptr;
  REQUIRE(cuMemHostAlloc(&pinned, sizeof(int), 0) == CUDA_SUCCESS);
  int pageable = 1;
  *static_cast<int*>(pinned) = 1;
  fake_gpu_hold_streams(1);
  CHECK(cuMemcpyHtoDAsync(first.address(), pinned, sizeof(int), stream) == CUDA_SUCCESS);
  CHECK(cuMemcpyHtoDAsync(second.address(), &pageable, sizeof(int), stream) == CUDA_SUCCESS);
  *static_cast<int*>(pinned) = pageable = 2;
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  fake_gpu_hold_streams(0);
  CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(first.values() == std::vector<int>{2});
  CHECK(second.values() == std::vector<int>{1});
  CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

TEST_CASE("fake cuda: freeing memory waits for the device") {
  OnDevice device(0);
  OwnStream stream;
  CUdeviceptr pointer = 0;
  REQUIRE(cuMemAlloc(&pointer, 16) == CUDA_SUCCESS);
  fake_gpu_hold_streams(1);
  REQUIRE(cuMemsetD8Async(pointer, 1, 16, stream) == CUDA_SUCCESS);
  std::atomic<bool> freed{false};
  std::thread other([&, context = device.context()] {
    cuCtxSetCurrent(context);
    cuMemFree(pointer);
    freed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(freed);
  fake_gpu_hold_streams(0);
  other.join();
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  CHECK(fake_gpu_alive("device_memory") == 0);
}

TEST_CASE("fake cuda: an address tells its kind, device and allocation") {
  OnDevice device(3);
  Buffer<float> data(64);
  unsigned type = 0;
  int ordinal = -1;
  CUcontext context = nullptr;
  CUdeviceptr start = 0;
  size_t bytes = 0;
  const CUdeviceptr inside = data.address() + 40;
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(cuMemGetAddressRange(&start, &bytes, inside) == CUDA_SUCCESS);
  CHECK(start == data.address());
  CHECK(bytes == 256);

  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                      CU_POINTER_ATTRIBUTE_CONTEXT};
  void* answers[] = {&type, &ordinal, &context};
  CHECK(cuPointerGetAttributes(3, attributes, answers, inside) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(ordinal == 3);
  CHECK(context == device.context());

  int host = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(&host);
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuPointerGetAttributes(3, attributes, answers, address) == CUDA_SUCCESS);
  CHECK(type == 0);
  CHECK(context == nullptr);
  CHECK(cuMemGetAddressRange(&start, &bytes, address) == CUDA_ERROR_NOT_FOUND);
}

TEST_CASE("fake cuda: host memory is known while it is registered") {
  OnDevice device(0);
  std::vector<char> host(10000);
  unsigned type = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(host.data());
  CHECK(cuMemHostRegister(host.data(), host.size(), 0) == CUDA_SUCCESS);
  CHECK(cuMemHostRegister(host.data() + 100, 10, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 9999) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_HOST);
  CHECK(fake_gpu_alive("host_registrations") == 1);
  CHECK(cuMemHostUnregister(host.data()) == CUDA_SUCCESS);
  CHECK(cuMemHostUnregister(host.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_ERROR_INVALID_VALUE);
}
