// Going on without ranks that were lost, in groups of GPUs.
#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/nothing_left.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"

using namespace std::chrono_literals;
using col::ErrorCode;
using col::test::check_good;
using col::test::check_nothing_left;
using col::test::error_of;
using col::test::expect;
using col::test::GpuArray;
using col::test::has;

namespace {

void check_works(col::Group& group, int gpu) {
  const int ranks = group.size();
  const GpuArray<float> data(gpu, std::size_t{1000}, static_cast<float>(group.rank() + 1));
  group.allreduce(data);
  expect(data.values() == std::vector<float>(1000, static_cast<float>(ranks * (ranks + 1) / 2)), "allreduce");
  const GpuArray<int> own(gpu, std::size_t{8}, group.rank()), other(gpu, std::size_t{8}, -1);
  group.sendrecv(own, (group.rank() + 1) % ranks, other, (group.rank() + ranks - 1) % ranks);
  expect(other.values() == std::vector<int>(8, (group.rank() + ranks - 1) % ranks), "sendrecv");
  group.iallreduce(data, data).wait();
  group.barrier();
}

}  // namespace

TEST_CASE("gpu faults: shrink goes on without a rank that has left", "[gpu]") {
  check_good(col::test::run_gpu_ranks(4, [](col::Group& group, int gpu) {
    check_works(group, gpu);
    if (group.rank() == 1) return col::Context::current().finalize();
    const std::string lost = error_of([&] { check_works(group, gpu); });
    expect(has(lost, "mismatch") && has(lost, "rank 1 is the odd one"), lost);
    col::Group three = group.shrink(std::array{1});
    expect(three.backend() == "nccl" && three.size() == 3 && three.rank() == (gpu == 0 ? 0 : gpu - 1));
    expect(three.device() == group.device(), "on the GPU that it was on");
    check_works(three, gpu);
    three.barrier();
  }));
  check_nothing_left();
}

TEST_CASE("gpu faults: shrink goes on after a call that hung, with all ranks", "[gpu]") {
  fake_nccl_reset();
  check_good(col::test::run_gpu_ranks(2, [](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    fake_nccl_hang(gpu, 1);
    const std::string hung = error_of([&] { group.allreduce(data, {.timeout = 400ms}); });
    expect(has(hung, "timeout"), hung);
    col::Group anew = group.shrink({});
    check_works(anew, gpu);
  }));
  fake_nccl_reset();
  check_nothing_left();
}

TEST_CASE("gpu faults: groups made from a group of GPUs stay on them, whatever the thread has made current", "[gpu]") {
  check_good(col::test::run_threads(3, [](int rank, col::Context& context) {
    std::optional<col::Group> group;
    {
      const col::nccl_backend::GpuDevice device(col::test::cuda(), rank);
      const col::nccl_backend::GpuDevice::Scope scope(device);
      group = context.init_group({.name = "g", .rank = rank, .world_size = 3, .backend = col::Backend::nccl});
      group->barrier();
    }
    if (rank == 0) return;
    col::Group two = group->shrink(std::array{0});
    expect(two.device().index == rank, "its GPU");
    const col::nccl_backend::GpuDevice device(col::test::cuda(), rank);
    const col::nccl_backend::GpuDevice::Scope scope(device);
    check_works(two, rank);
  }));
}
