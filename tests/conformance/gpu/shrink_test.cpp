// Going on without ranks that were lost, in groups of GPUs.
#include <array>
#include <chrono>
#include <optional>

#include "conformance/gpu/faults.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

void check_works(Group& group, int gpu) {
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

TEST_CASE("gpu faults: shrink goes on without a rank that has left", "[gpu]") {
  check_good(run_gpu_ranks(4, [](Group& group, int gpu) {
    check_works(group, gpu);
    if (group.rank() == 1) return Context::current().finalize();
    expect_error(ErrorCode::mismatch, "rank 1 is the odd one", [&] { check_works(group, gpu); });
    Group three = group.shrink(std::array{1});
    expect(three.backend() == "nccl" && three.size() == 3 && three.rank() == (gpu == 0 ? 0 : gpu - 1));
    expect(three.device() == group.device(), "on the GPU that it was on");
    check_works(three, gpu);
    three.barrier();
  }));
  check_nothing_left();
}

TEST_CASE("gpu faults: shrink goes on after a call that hung, with all ranks", "[gpu]") {
  check_good(run_with_faults(2, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    fake_nccl_hang(gpu, 1);
    expect_error("timeout", [&] { group.allreduce(data, {.timeout = 400ms}); });
    Group anew = group.shrink({});
    check_works(anew, gpu);
  }));
}

TEST_CASE("gpu faults: groups made from a group of GPUs stay on them, whatever the thread has made current", "[gpu]") {
  check_good(run_threads(3, [](int rank, Context& context) {
    std::optional<Group> group;
    {
      const OnGpu current(rank);
      group = context.init_group({.name = "g", .rank = rank, .world_size = 3, .backend = Backend::nccl});
      group->barrier();
    }
    if (rank == 0) return;
    Group two = group->shrink(std::array{0});
    expect(two.device().index == rank, "its GPU");
    const OnGpu current(rank);
    check_works(two, rank);
  }));
}

}  // namespace
}  // namespace col::test
