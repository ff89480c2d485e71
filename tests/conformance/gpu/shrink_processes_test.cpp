// A rank with a GPU is killed, and the others go on without it. Nothing here may start CUDA in the parent: a forked
// child would have no driver.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"

using col::ErrorCode;
using col::test::expect;
using col::test::GpuArray;

TEST_CASE("gpu processes: a rank is killed, and the others go on with their GPUs", "[gpu]") {
  const auto outcomes = col::test::run_processes(4, [](int rank, col::Context& context) {
    const col::nccl_backend::GpuDevice device(col::test::cuda(), rank);
    const col::nccl_backend::GpuDevice::Scope scope(device);
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 4, .backend = col::Backend::nccl});
    const GpuArray<float> data(rank, std::size_t{1000}, 1.0f);
    group.allreduce(data);
    if (rank == 2) ::kill(::getpid(), SIGKILL);
    int lost = -1;
    try {
      group.allreduce(data);
    } catch (const col::Error& error) {
      expect(error.code() == ErrorCode::peer_lost, error.what());
      lost = error.rank();
    }
    expect(lost == 2, "who is lost");
    col::Group three = group.shrink(std::array{lost});
    expect(three.backend() == "nccl" && three.size() == 3 && three.rank() == (rank < 2 ? rank : rank - 1));
    context.destroy_group("g");
    data.set(std::vector<float>(1000, static_cast<float>(rank)));
    three.allreduce(data);
    expect(data.values() == std::vector<float>(1000, 4.0f), "the sum over ranks 0, 1 and 3");
    context.finalize();
  });
  INFO(col::test::show(outcomes));
  CHECK(outcomes[2].signal == SIGKILL);
  for (const int rank : {0, 1, 3}) CHECK(outcomes[static_cast<std::size_t>(rank)].good);
}
