// Memory, copies and pointer attributes of the stand-in for the driver.
#include <atomic>
#include <numeric>

#include "unit/fake_gpu/session.hpp"

using namespace fake_gpu_test;

TEST_CASE("fake cuda: device memory is limited, given back, and never holds zeros at first") {
  OnDevice device(0);
  constexpr size_t total = size_t{512} << 20;
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
    CHECK(cuMemcpyAsync(here.address(), address_of(values.data()), 1024, stream) == CUDA_SUCCESS);
    CHECK(cuMemcpyAsync(there.address(), here.address(), 1024, stream) == CUDA_SUCCESS);
    CHECK(cuMemcpyAsync(address_of(back.data()), there.address(), 1024, stream) == CUDA_SUCCESS);
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
    CHECK(cuMemcpyAsync(address_of(pinned), here.address(), 1024, stream) == CUDA_SUCCESS);
    CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(static_cast<int*>(pinned)[255] == 260);
    CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS);
    CHECK(cuMemFreeHost(pinned) == CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_CASE("fake cuda: a copy or a fill that leaves an allocation is refused") {
  OnDevice device(0);
  OwnStream stream;
  Buffer<char> data(100);
  char host[200] = {};
  CHECK(cuMemcpyAsync(data.address(), address_of(host), 101, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyAsync(data.address() + 99, address_of(host), 2, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD8Async(data.address(), 1, 101, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyAsync(data.address(), address_of(host), 0, stream) == CUDA_SUCCESS);
  CHECK(cuMemcpyAsync(data.address(), address_of(host), 1, reinterpret_cast<CUstream>(0x1234)) ==
        CUDA_ERROR_INVALID_HANDLE);
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
  CHECK(cuMemcpyAsync(first.address(), address_of(pinned), sizeof(int), stream) == CUDA_SUCCESS);
  CHECK(cuMemcpyAsync(second.address(), address_of(&pageable), sizeof(int), stream) == CUDA_SUCCESS);
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

TEST_CASE("fake cuda: an address tells its kind and device") {
  OnDevice device(3);
  Buffer<float> data(64);
  unsigned type = 0;
  int ordinal = -1;
  CUcontext context = nullptr;
  const CUdeviceptr inside = data.address() + 40;
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside) == CUDA_SUCCESS);
  CHECK(ordinal == 3);
  CHECK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, inside) == CUDA_SUCCESS);
  CHECK(context == device.context());
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(&type)) == CUDA_ERROR_INVALID_VALUE);

  void* pinned = nullptr;
  REQUIRE(cuMemHostAlloc(&pinned, 1000, 0) == CUDA_SUCCESS);
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(pinned) + 999) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_HOST);
  CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS);
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address_of(pinned)) == CUDA_ERROR_INVALID_VALUE);
}
