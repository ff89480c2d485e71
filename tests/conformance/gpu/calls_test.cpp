// Calls on GPUs: every collective, those that are wrong or cannot be done, and the time that they take.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/channel.hpp>
#include <col/device.hpp>

#include "conformance/gpu/calls.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

GPU_TEST_CASE("gpu: reductions of every type are right on every rank", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    reductions<std::int8_t>(group, gpu, 257);
    reductions<std::uint8_t>(group, gpu, 257);
    reductions<std::int32_t>(group, gpu, 257);
    reductions<std::uint32_t>(group, gpu, 257);
    reductions<std::int64_t>(group, gpu, 257);
    reductions<std::uint64_t>(group, gpu, 257);
    reductions<col::float16>(group, gpu, 257);
    reductions<col::bfloat16>(group, gpu, 257);
    reductions<float>(group, gpu, 257);
    reductions<double>(group, gpu, 257);
  }));
  for (const int ranks : {1, 4, 8}) {
    check_good(run_gpu_ranks(ranks, [](Group& group, int gpu) {
      reductions<std::int32_t>(group, gpu, 1);
      reductions<float>(group, gpu, 100);
    }));
  }
}

GPU_TEST_CASE("gpu: what only moves data is right on every rank, and leaves other outputs alone", "[gpu]") {
  for (const int ranks : {1, 2, 4, 8}) {
    check_good(run_gpu_ranks(ranks, [](Group& group, int gpu) {
      moves(group, gpu, 1);
      moves(group, gpu, 777);
      if (group.size() > 1) ring_of_messages(group, gpu);
    }));
  }
}

// ---- Wrong calls

GPU_TEST_CASE("gpu: memory that is no GPU's, or another's, is refused, and the group goes on", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    std::vector<float> host(8, 1.0f);
    // As a program that has mixed up its devices, or its pointers, would call.
    if (!ranks_share_gpu()) {
      const OnGpu other(1 - gpu);
      const GpuArray<float> elsewhere(1 - gpu, std::size_t{8}, 1.0f);
      const std::string wrong_gpu =
          fmt::format("the memory is on GPU {}, and this rank's part in the group on GPU {}", 1 - gpu, gpu);
      expect_error(wrong_gpu, [&] { group.allreduce(elsewhere); });
      expect_error(wrong_gpu, [&] { (void)group.iallreduce(elsewhere, elsewhere); });
      expect_error(wrong_gpu, [&] { group.send(elsewhere, 1 - gpu); });
    }
    {
      const OnGpu other(1 - gpu);
      const TensorView mislabelled(host.data(), host.size(), DType::float32, {Device::Type::cuda, gpu_of(gpu)});
      expect_error("no memory of a GPU", [&] { group.allreduce(mislabelled); });
    }
    const GpuArray<float> data(gpu, std::vector<float>(8, 1.0f));
    const TensorView view = data;
    const TensorView too_long(view.data, std::size_t{1} << 40, view.dtype, view.device);
    expect_error("or not to its end", [&] { group.allreduce(too_long); });
    group.allreduce(data);
    expect(data.values() == std::vector<float>(8, 2.0f), "the sum");
  }));
}

GPU_TEST_CASE("gpu: a rank that calls something else is named on every rank, and nobody hangs", "[gpu]") {
  const auto outcomes = run_gpu_ranks(3, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{gpu == 1 ? 9U : 8U}, 1.0f);
    group.allreduce(data);
  });
  check_all(outcomes,
            {.code = ErrorCode::mismatch, .rank = 1, .says = "rank 1 called allreduce of 9 float32", .promptly = true});
}

GPU_TEST_CASE("gpu: a rank that never calls is named by the timeout", "[gpu]") {
  Company company;
  const auto outcomes = run_gpu_ranks(2, [&](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    if (gpu == 1) return company.stay();
    company.call_in_vain([&] { group.allreduce(data, {.timeout = 500ms}); });
  });
  check_good_soon(outcomes);
}

GPU_TEST_CASE("gpu: two ranks on one GPU are named, to the others as well", "[gpu]") {
  need_own_gpus(2);
  const auto outcomes = run_threads(3, [](int rank, Context& context) {
    const OnGpu current(rank == 1 ? 1 : 0);
    context.init_group({.name = "g", .rank = rank, .world_size = 3, .backend = Backend::nccl, .timeout = 20s});
  });
  check_all(outcomes, {.code = ErrorCode::unavailable, .says = "ranks 0 and 2 are on one GPU", .promptly = true});
  for (const Outcome& outcome : outcomes) CHECK(has(outcome.text, "--gpus-per-rank"));
}

GPU_TEST_CASE("gpu: a rank that has left in good order is named, and not waited for", "[gpu]") {
  const auto outcomes = run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    group.allreduce(data);
    if (group.rank() == 1) return Context::current().finalize();
    group.allreduce(data);
  });
  const char* const left = "rank 1 called nothing more, and left the group";
  check_all(outcomes, {.code = ErrorCode::mismatch, .rank = 1, .says = left, .promptly = true}, 1);
  CHECK(outcomes[1].good);
}

GPU_TEST_CASE("gpu: what ranks other than the root pass to a scatter is not looked at", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const std::vector<std::size_t> counts{1, 2};
    const std::vector<double> numbers{1, 2, 3};
    const GpuArray<double> source(gpu, numbers), part(gpu, counts[static_cast<std::size_t>(group.rank())]);
    const GpuArray<std::uint8_t> ignored(gpu, std::size_t{5});
    if (group.rank() == 0)
      group.scatterv(source, counts, part);
    else
      group.scatterv(ignored, {}, part);
    const std::vector<double> wanted = group.rank() == 0 ? std::vector{1.0} : std::vector{2.0, 3.0};
    expect(part.values() == wanted, "scatterv");
  }));
}

// ---- Timers

GPU_TEST_CASE("gpu: a timer's stream takes calls, and tells how long they took", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const auto timer = col::find_backend("nccl")->device_memory().make_timer(gpu_of(gpu));
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(1000, 1));
    std::int32_t wanted = 1;
    for (int round = 0; round < 3; ++round) {
      const auto began = std::chrono::steady_clock::now();
      timer->start();
      Work work = group.iallreduce(data, data, {.stream = timer->stream()});
      timer->stop();
      work.wait();
      std::optional<double> seconds;
      const Deadline deadline = Deadline::after(20s);
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
  DeviceMemory& gpus = col::find_backend("nccl")->device_memory();
  CHECK_THROWS_AS(gpus.make_timer(gpus.devices()), Error);
  CHECK_THROWS_AS(gpus.cache_bytes(-1), Error);
  CHECK(gpus.cache_bytes(0) > 0);
}

}  // namespace
}  // namespace col::test
