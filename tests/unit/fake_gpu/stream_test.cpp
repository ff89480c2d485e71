// Streams, events and kernels of the stand-in for the driver.
#include <atomic>

#include "support/fake_gpu/kernels.hpp"
#include "unit/fake_gpu/session.hpp"

using namespace fake_gpu_test;

namespace {

// A host function of a stream that waits until the test lets it go.
struct Gate {
  std::atomic<bool> entered{false};
  std::atomic<bool> open{false};
};

void pass(void* data) {
  auto* gate = static_cast<Gate*>(data);
  gate->entered = true;
  soon([&] { return gate->open.load(); });
}

constexpr unsigned char kImage[] = {0x50, 0xED, 0x55, 0xBA, 0, 0};

void scale(fake_gpu::Extent, fake_gpu::Extent, void** arguments) {
  const auto count = fake_gpu::argument<size_t>(arguments, 1);
  float* data = fake_gpu::host_view<float>(fake_gpu::argument<float*>(arguments, 0), count);
  for (size_t i = 0; i < count; ++i) data[i] *= fake_gpu::argument<float>(arguments, 2);
}

}  // namespace

TEST_CASE("fake cuda: work of a stream is asynchronous and in order") {
  OnDevice device(0);
  OwnStream stream, other;
  Gate gate;
  Buffer<int> data(std::vector<int>{1});
  const int two = 2;
  CHECK(cuLaunchHostFunc(stream, pass, &gate) == CUDA_SUCCESS);
  CHECK(cuMemcpyAsync(data.address(), address_of(&two), sizeof two, stream) == CUDA_SUCCESS);
  REQUIRE(soon([&] { return gate.entered.load(); }));
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamQuery(other) == CUDA_SUCCESS);
  CHECK(data.values() == std::vector<int>{1});
  gate.open = true;
  CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  CHECK(data.values() == std::vector<int>{2});
}

TEST_CASE("fake cuda: an event orders streams, tells when it is reached, and measures time") {
  OnDevice device(0);
  OwnStream first, second;
  CUevent begin, end, untimed;
  REQUIRE(cuEventCreate(&begin, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
  REQUIRE(cuEventCreate(&end, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
  REQUIRE(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  CHECK(cuEventQuery(begin) == CUDA_SUCCESS);
  float milliseconds = -1;
  CHECK(cuEventElapsedTime(&milliseconds, begin, end) == CUDA_ERROR_INVALID_HANDLE);
  Gate gate;
  CHECK(cuEventRecord(begin, first) == CUDA_SUCCESS);
  CHECK(cuLaunchHostFunc(first, pass, &gate) == CUDA_SUCCESS);
  CHECK(cuEventRecord(end, first) == CUDA_SUCCESS);
  CHECK(cuStreamWaitEvent(second, end, 0) == CUDA_SUCCESS);
  REQUIRE(soon([&] { return gate.entered.load(); }));
  CHECK(cuEventSynchronize(begin) == CUDA_SUCCESS);
  const auto since = std::chrono::steady_clock::now();
  CHECK(cuEventQuery(end) == CUDA_ERROR_NOT_READY);
  CHECK(cuEventElapsedTime(&milliseconds, begin, end) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamQuery(second) == CUDA_ERROR_NOT_READY);
  const std::chrono::duration<float, std::milli> held = std::chrono::steady_clock::now() - since;
  gate.open = true;
  CHECK(cuStreamSynchronize(second) == CUDA_SUCCESS);
  CHECK(cuEventElapsedTime(&milliseconds, begin, end) == CUDA_SUCCESS);
  CHECK(milliseconds >= held.count());
  CHECK(cuEventRecord(untimed, first) == CUDA_SUCCESS);
  CHECK(cuEventElapsedTime(&milliseconds, begin, untimed) == CUDA_ERROR_INVALID_HANDLE);
  {
    OnDevice other(1);
    CHECK(cuEventRecord(begin, nullptr) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuStreamWaitEvent(nullptr, end, 0) == CUDA_SUCCESS);
  }
  OnDevice again(0);
  for (CUevent event : {begin, end, untimed}) CHECK(cuEventDestroy(event) == CUDA_SUCCESS);
  CHECK(cuEventDestroy(begin) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("fake cuda: the null stream orders with blocking streams and not with the others") {
  OnDevice device(0);
  OwnStream blocking(CU_STREAM_DEFAULT), free(CU_STREAM_NON_BLOCKING);
  Gate gate;
  Buffer<char> data(1);
  CHECK(cuLaunchHostFunc(blocking, pass, &gate) == CUDA_SUCCESS);
  CHECK(cuMemsetD8Async(data.address(), 7, 1, nullptr) == CUDA_SUCCESS);
  OwnStream later(CU_STREAM_DEFAULT);
  CHECK(cuMemsetD8Async(data.address(), 8, 1, later) == CUDA_SUCCESS);
  CHECK(cuMemsetD8Async(data.address(), 9, 1, free) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(free) == CUDA_SUCCESS);
  REQUIRE(soon([&] { return gate.entered.load(); }));
  CHECK(data.values() == std::vector<char>{9});
  CHECK(cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamQuery(later) == CUDA_ERROR_NOT_READY);
  gate.open = true;
  CHECK(cuStreamSynchronize(later) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(nullptr) == CUDA_SUCCESS);
  CHECK(data.values() == std::vector<char>{8});
}

TEST_CASE("fake cuda: a destroyed stream finishes its work, and its handle is dead") {
  Gate gate;  // outlives the context, whose last release waits for the stream
  OnDevice device(0);
  CUstream stream;
  REQUIRE(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100) == CUDA_SUCCESS);
  CHECK(fake_gpu_alive("high_priority_streams") == 1);
  CHECK(cuLaunchHostFunc(stream, pass, &gate) == CUDA_SUCCESS);
  CHECK(cuStreamDestroy(stream) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(soon([&] { return gate.entered.load(); }));
  gate.open = true;
  CHECK(fake_gpu_alive("streams") == 0);
  CHECK(fake_gpu_alive("high_priority_streams") == 0);
}

TEST_CASE("fake cuda: a host function must not call the driver") {
  OnDevice device(0);
  OwnStream stream;
  CUresult inside = CUDA_SUCCESS;
  auto call = [](void* data) {
    CUevent event;
    *static_cast<CUresult*>(data) = cuEventCreate(&event, 0);
  };
  CHECK(cuLaunchHostFunc(stream, call, &inside) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(inside == CUDA_ERROR_NOT_PERMITTED);
}

TEST_CASE("fake cuda: a kernel is found by name and gets its arguments as they were at the launch") {
  OnDevice device(0);
  OwnStream stream;
  fake_gpu::register_kernel<float*, size_t, float>("scale", scale);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(cuModuleLoadData(&module, "no image") == CUDA_ERROR_INVALID_IMAGE);
  REQUIRE(cuModuleLoadData(&module, kImage) == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&function, module, "missing") == CUDA_ERROR_NOT_FOUND);
  REQUIRE(cuModuleGetFunction(&function, module, "scale") == CUDA_SUCCESS);
  Buffer<float> data(std::vector<float>{1, 2, 3});
  float* pointer = data.get();
  size_t count = 3;
  float factor = 10;
  void* arguments[] = {&pointer, &count, &factor};
  fake_gpu_hold_streams(1);
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr) == CUDA_SUCCESS);
  factor = 1000;
  fake_gpu_hold_streams(0);
  CHECK(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(data.values() == std::vector<float>{10, 20, 30});
  CHECK(cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, stream, arguments, nullptr) == CUDA_ERROR_INVALID_VALUE);
  {
    OnDevice other(1);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  }
  OnDevice again(0);
  CHECK(cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("fake cuda: a kernel that leaves its memory breaks the context") {
  OnDevice device(4);
  OwnStream stream;
  fake_gpu::register_kernel<float*, size_t, float>("scale", scale);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(cuModuleLoadData(&module, kImage) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "scale") == CUDA_SUCCESS);
  CUdeviceptr small = 0;
  REQUIRE(cuMemAlloc(&small, 8) == CUDA_SUCCESS);
  size_t count = 3;
  float factor = 1;
  void* arguments[] = {&small, &count, &factor};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(cuMemFree(small) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("fake cuda: an event of a context comes after all of its streams, and spoils what is being captured") {
  OnDevice device(0);
  OwnStream first, second;
  CUevent event;
  REQUIRE(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  CHECK(cuCtxRecordEvent(device.context(), event) == CUDA_SUCCESS);
  CHECK(soon([&] { return cuEventQuery(event) == CUDA_SUCCESS; }));
  Gate gate;
  CHECK(cuLaunchHostFunc(second, pass, &gate) == CUDA_SUCCESS);
  REQUIRE(soon([&] { return gate.entered.load(); }));
  CHECK(cuCtxRecordEvent(device.context(), event) == CUDA_SUCCESS);
  CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  // It holds up nothing.
  CHECK(cuLaunchHostFunc(
            first, [](void*) {}, nullptr) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(first) == CUDA_SUCCESS);
  gate.open = true;
  CHECK(cuEventSynchronize(event) == CUDA_SUCCESS);

  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(cuCtxRecordEvent(device.context(), event) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(cuStreamEndCapture(first, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  {
    OnDevice other(1);
    CHECK(cuCtxRecordEvent(other.context(), event) == CUDA_ERROR_INVALID_HANDLE);
  }
  const OnDevice again(0);
  CHECK(cuCtxRecordEvent(device.context(), nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuCtxRecordEvent(nullptr, event) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuEventDestroy(event) == CUDA_SUCCESS);
}
