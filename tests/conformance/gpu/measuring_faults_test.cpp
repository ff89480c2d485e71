// Timers and comparisons while the GPU is busy, or fails. By the stand-in alone, which is told to.
#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <col/channel.hpp>
#include <col/device.hpp>

#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/graphs.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// Keeps the device started, which the memory of arrays ends with.
DeviceMemory& gpus(int device = 0) {
  DeviceMemory& all = col::find_backend("nccl")->device_memory();
  (void)all.cache_bytes(device);
  return all;
}

const void* address_of(const GpuArray<std::int32_t>& array) {
  return ConstTensorView(array).data;
}

template <class Ask>
auto wait_for(Ask ask) {
  const Deadline deadline = Deadline::after(20s);
  auto answer = ask();
  for (; !answer; answer = ask()) REQUIRE(!deadline.expired());
  return *answer;
}

TEST_CASE("gpu measuring faults: nothing is known before the GPU is there", "[gpu]") {
  fake_gpu_reset();
  (void)gpus();
  const GpuArray<std::int32_t> left(0, std::size_t{8}, 1), right(0, std::size_t{8}, 2);
  const auto timer = gpus().make_timer(0);
  // The first one loads the kernels, and two allocate what those below use: allocating may wait for the GPU.
  {
    const auto first = gpus().compare(address_of(left), address_of(right), 8, 4, 0, {});
    const auto other = gpus().compare(address_of(left), address_of(right), 8, 4, 0, {});
    if (first != nullptr) CHECK(wait_for([&] { return first->result(); }).count == 8);
    if (other != nullptr) CHECK(wait_for([&] { return other->result(); }).count == 8);
  }
  fake_gpu_hold_streams(1);
  timer->start();
  const auto second = gpus().compare(address_of(left), address_of(right), 8, 4, 0, timer->stream());
  auto dropped = gpus().compare(address_of(left), address_of(right), 8, 4, 0, timer->stream());
  timer->stop();
  CHECK_FALSE(timer->seconds());
  if (second != nullptr) CHECK_FALSE(second->result());
  dropped.reset();
  fake_gpu_hold_streams(0);
  CHECK(wait_for([&] { return timer->seconds(); }) >= 0);
  if (second != nullptr) CHECK(wait_for([&] { return second->result(); }).count == 8);
}

TEST_CASE("gpu measuring faults: what the driver refuses is an error that names it", "[gpu]") {
  fake_gpu_reset();
  (void)gpus();
  fake_gpu_fail("cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY, 1);
  CHECK(has(error_of([] { gpus().make_timer(0); }).what(), "cannot make a CUDA event"));
  fake_gpu_fail("cuDeviceGetAttribute", CUDA_ERROR_UNKNOWN, 1);
  CHECK(has(error_of([] { (void)gpus(); }).what(), "cannot ask for the size of the GPU's cache"));
  const auto timer = gpus().make_timer(0);
  timer->start();
  timer->stop();
  wait_for([&] { return timer->seconds(); });
  fake_gpu_fail("cuEventElapsedTime_v2", CUDA_ERROR_UNKNOWN, 1);
  CHECK(has(error_of([&] { timer->seconds(); }).what(), "cannot read the time between CUDA events"));
  fake_gpu_fail("cuEventRecord", CUDA_ERROR_UNKNOWN, 1);
  CHECK(has(error_of([&] { timer->start(); }).what(), "cannot record a CUDA event"));
  const GpuArray<std::int32_t> data(0, std::size_t{8}, 1);
  const auto compare = [&] { return gpus().compare(address_of(data), address_of(data), 8, 4, 0, {}); };
  if (compare() == nullptr) return;
  fake_gpu_fail("cuLaunchKernel", CUDA_ERROR_UNKNOWN, 1);
  CHECK(has(error_of([&] { compare(); }).what(), "cannot start a kernel of col"));
  const auto comparison = compare();
  CHECK(wait_for([&] { return comparison->result(); }).count == 0);
  fake_gpu_reset();
}

TEST_CASE("gpu measuring faults: copies to the GPU and from it do not wait for each other", "[gpu]") {
  fake_gpu_reset();
  constexpr std::size_t kBytes = std::size_t{1} << 20;  // small ones go into the default stream
  const auto wide = gpus().allocate(0, kBytes), other = gpus().allocate(0, kBytes);
  const auto near = gpus().allocate_host(0, kBytes), far = gpus().allocate_host(0, kBytes);
  fake_gpu_hold_copies_to_device(1);
  const auto up = gpus().copy(wide.get(), near.get(), kBytes, 0, {});
  const auto down = gpus().copy(far.get(), other.get(), kBytes, 0, {});
  wait_for([&] { return down->done() ? std::optional(true) : std::nullopt; });
  CHECK_FALSE(up->done());
  fake_gpu_hold_copies_to_device(0);
  wait_for([&] { return up->done() ? std::optional(true) : std::nullopt; });
}

TEST_CASE("gpu measuring faults: a GPU that is first used during a capture does not spoil it", "[gpu]") {
  fake_gpu_reset();
  const OnGpu current(0);
  const nccl_backend::GpuStream stream(cuda());
  const int unused = gpus().devices() - 2;
  Capture capture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(gpus().name(unused) == "fake GPU " + std::to_string(unused));
  capture.end();
}

TEST_CASE("gpu measuring faults: kernels that do not load are no error, the host compares then", "[gpu]") {
  fake_gpu_reset();
  const int other = gpus().devices() - 1;  // whose kernels nobody has asked for
  (void)gpus(other);
  const GpuArray<std::int32_t> data(other, std::size_t{8}, 1);
  fake_gpu_fail("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND, 1);
  CHECK(gpus().compare(address_of(data), address_of(data), 8, 4, other, {}) == nullptr);
  fake_gpu_reset();
}

}  // namespace
}  // namespace col::test
