// Calls on GPUs that are wrong, or cannot be done: what is said of them, and that the group goes on, or ends
// everywhere.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/gpu_case.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using col::ErrorCode;
using col::test::check_good;
using col::test::error_of;
using col::test::expect;
using col::test::GpuArray;
using col::test::has;
using col::test::Outcome;
using col::test::run_gpu_ranks;

GPU_TEST_CASE("gpu: memory that is no GPU's, or another's, is refused, and the group goes on", "[gpu]") {
  check_good(run_gpu_ranks(2, [](col::Group& group, int gpu) {
    std::vector<float> host(8, 1.0f);
    // As a program that has mixed up its devices, or its pointers, would call.
    {
      const col::nccl_backend::GpuDevice other(col::test::cuda(), 1 - gpu);
      const col::nccl_backend::GpuDevice::Scope scope(other);
      const GpuArray<float> elsewhere(1 - gpu, std::size_t{8}, 1.0f);
      const std::string wrong_gpu =
          fmt::format("the memory is on GPU {}, and this rank's part in the group on GPU {}", 1 - gpu, gpu);
      expect(has(error_of([&] { group.allreduce(elsewhere); }), wrong_gpu), "another GPU's memory");
      expect(has(error_of([&] { (void)group.iallreduce(elsewhere, elsewhere); }), wrong_gpu), "and asynchronously");
      expect(has(error_of([&] { group.send(elsewhere, 1 - gpu); }), wrong_gpu), "and sent");
      const col::TensorView mislabelled(host.data(), host.size(), col::DType::float32, {col::Device::Type::cuda, gpu});
      expect(has(error_of([&] { group.allreduce(mislabelled); }), "no memory of a GPU"), "host memory called a GPU's");
    }
    const GpuArray<float> data(gpu, std::vector<float>(8, 1.0f));
    const col::TensorView view = data;
    const col::TensorView too_long(view.data, std::size_t{1} << 40, view.dtype, view.device);
    expect(has(error_of([&] { group.allreduce(too_long); }), "or not to its end"), "more than there is");
    group.allreduce(data);
    expect(data.values() == std::vector<float>(8, 2.0f), "the sum");
  }));
}

GPU_TEST_CASE("gpu: a rank that calls something else is named on every rank, and nobody hangs", "[gpu]") {
  const auto outcomes = run_gpu_ranks(3, [](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{gpu == 1 ? 9U : 8U}, 1.0f);
    group.allreduce(data);
  });
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::mismatch);
    CHECK(outcome.error_rank == 1);
    CHECK(has(outcome.text, "rank 1 called allreduce of 9 float32"));
    CHECK(outcome.seconds < 15);
  }
}

GPU_TEST_CASE("gpu: a rank that never calls is named by the timeout", "[gpu]") {
  col::test::Company company;
  const auto outcomes = run_gpu_ranks(2, [&](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    if (gpu == 1) return company.stay();
    const std::string error = error_of([&] { group.allreduce(data, {.timeout = 500ms}); });
    company.end();
    expect(has(error, "timeout") && has(error, "rank 1 did not enter it"), error);
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  CHECK(outcomes[0].seconds < 15);
}

GPU_TEST_CASE("gpu: two ranks on one GPU are named, to the others as well", "[gpu]") {
  col::test::need_gpus(2);
  const auto outcomes = col::test::run_threads(3, [](int rank, col::Context& context) {
    const col::nccl_backend::GpuDevice device(col::test::cuda(), rank == 1 ? 1 : 0);
    const col::nccl_backend::GpuDevice::Scope scope(device);
    context.init_group({.name = "g", .rank = rank, .world_size = 3, .backend = col::Backend::nccl, .timeout = 20s});
  });
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::unavailable);
    CHECK(has(outcome.text, "ranks 0 and 2 are on one GPU"));
    CHECK(has(outcome.text, "--gpus-per-rank"));
    CHECK(outcome.seconds < 15);
  }
}

GPU_TEST_CASE("gpu: a rank that has left in good order is named, and not waited for", "[gpu]") {
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    group.allreduce(data);
    if (group.rank() == 1) return col::Context::current().finalize();
    group.allreduce(data);
  });
  INFO(col::test::show(outcomes));
  CHECK(outcomes[0].code == ErrorCode::mismatch);
  CHECK(outcomes[0].error_rank == 1);
  CHECK(has(outcomes[0].text, "rank 1 called nothing more, and left the group"));
  CHECK(outcomes[0].seconds < 10);
  CHECK(outcomes[1].good);
}

GPU_TEST_CASE("gpu: what ranks other than the root pass to a scatter is not looked at", "[gpu]") {
  check_good(run_gpu_ranks(2, [](col::Group& group, int gpu) {
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
