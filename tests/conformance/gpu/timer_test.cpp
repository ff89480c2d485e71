// The time that work in a stream takes, on the clock of its GPU.
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <col/backend.hpp>

#include "conformance/gpu/gpu_case.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using col::test::expect;
using col::test::GpuArray;

GPU_TEST_CASE("gpu: a timer's stream takes calls, and tells how long they took", "[gpu]") {
  col::test::need_gpus(2);
  col::DeviceMemory& gpus = col::find_backend("nccl")->device_memory();
  col::test::check_good(col::test::run_gpu_ranks(2, [&](col::Group& group, int gpu) {
    const auto timer = gpus.make_timer(gpu);
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(1000, 1));
    std::int32_t wanted = 1;
    for (int round = 0; round < 3; ++round) {
      const auto began = std::chrono::steady_clock::now();
      timer->start();
      col::Work work = group.iallreduce(data, data, {.stream = timer->stream()});
      timer->stop();
      work.wait();
      std::optional<double> seconds;
      const col::Deadline deadline = col::Deadline::after(20s);
      while (!(seconds = timer->seconds())) expect(!deadline.expired(), "the timer does not stop");
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
      // An event's time is known to about half a microsecond.
      expect(*seconds >= 0 && *seconds <= passed.count() + 1e-5, "no more than has passed on the host");
      wanted *= 2;
      expect(data.values() == std::vector<std::int32_t>(1000, wanted), "the sum");
    }
  }));
}

GPU_TEST_CASE("gpu: what there is not has no timer, and no cache", "[gpu]") {
  col::DeviceMemory& gpus = col::find_backend("nccl")->device_memory();
  CHECK_THROWS_AS(gpus.make_timer(gpus.devices()), col::Error);
  CHECK_THROWS_AS(gpus.cache_bytes(-1), col::Error);
  CHECK(gpus.cache_bytes(0) > 0);
}
