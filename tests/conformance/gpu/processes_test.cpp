// Groups of GPUs, and calls over several GPUs of each rank, where ranks are processes. Nothing here may start CUDA in
// the parent: a forked child would have no driver.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "conformance/gpu/multi_gpu_calls.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("multi-gpu processes: every call is right, with one GPU a rank and with more", "[gpu]") {
  for (const auto& [ranks, each] : std::vector<std::pair<int, int>>{{2, 4}, {4, 2}, {2, 1}}) {
    CAPTURE(ranks, each);
    check_good(run_processes(ranks, multi_body(ranks, each, [](Group& group, const Gpus& gpus) {
                               check_reductions(group, gpus, 100);
                               check_gathering(group, gpus, 10);
                               check_scattering(group, gpus, 10);
                               check_messages(group, gpus, 10);
                             })));
  }
}

TEST_CASE("multi-gpu processes: GPUs are numbered as each process sees them", "[gpu]") {
  check_good(run_processes(2, [](int rank, Context& context) {
    // As colrun --gpus-per-rank 2 does: both have GPUs 0 and 1.
    ::setenv("CUDA_VISIBLE_DEVICES", rank == 0 ? "4,5" : "6,7", 1);
    const Gpus gpus({0, 1});
    const nccl_backend::GpuDevice::Scope scope(gpus.device(0));
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend = Backend::nccl});
    check_reductions(group, gpus, 10);
    const IntArrays data(gpus, 8, rank + 1);
    if (rank == 0) group.send_multigpu(data.view(0), 1, 1);
    if (rank == 1) {
      group.recv_multigpu(data.view(1), 0, 0);
      expect(data.values(1) == Ints(8, 1), "a message");
    }
    expect_error("there is no GPU 2 on rank", [&] { group.send_multigpu(data.view(0), 1 - rank, 2); });
  }));
}

TEST_CASE("multi-gpu processes: a rank that is killed is named, before and after GPUs are connected", "[gpu]") {
  for (const bool before : {false, true}) {
    CAPTURE(before);
    const auto outcomes = run_processes(3, multi_body(3, 2, [&](Group& group, const Gpus& gpus) {
                                          const IntArrays data(gpus, 8, 1);
                                          if (before) group.allreduce_multigpu(data.views());
                                          group.barrier();
                                          if (group.rank() == 1) ::kill(::getpid(), SIGKILL);
                                          group.allreduce_multigpu(data.views());
                                        }));
    CHECK(outcomes[1].signal == SIGKILL);
    check_all(outcomes, {.code = ErrorCode::peer_lost, .rank = 1, .promptly = true}, 1);
  }
}

TEST_CASE("multi-gpu processes: a sender that is killed is named to the receiver", "[gpu]") {
  const auto outcomes = run_processes(2, multi_body(2, 2, [](Group& group, const Gpus& gpus) {
                                        const IntArrays data(gpus, 8, 1);
                                        group.barrier();
                                        if (group.rank() == 0) ::kill(::getpid(), SIGKILL);
                                        group.recv_multigpu(data.view(1), 0, 0);
                                      }));
  check_all(outcomes, {.code = ErrorCode::peer_lost, .rank = 0, .promptly = true}, 0);
}

TEST_CASE("multi-gpu processes: ranks that do not agree are told", "[gpu]") {
  const auto outcomes = run_processes(3, multi_body(3, 2, [](Group& group, const Gpus& gpus) {
                                        const IntArrays data(gpus, 8, 1);
                                        group.allreduce_multigpu(data.views());
                                        if (group.rank() == 2)
                                          group.broadcast_multigpu(data.views());
                                        else
                                          group.allreduce_multigpu(data.views());
                                      }));
  check_all(outcomes,
            {.code = ErrorCode::mismatch, .rank = 2, .says = "rank 2 called broadcast_multigpu", .promptly = true});
}

TEST_CASE("gpu processes: ranks with different NCCLs are told so", "[gpu]") {
  const auto outcomes = run_processes(2, [](int rank, Context& context) {
    ::setenv("FAKE_NCCL_VERSION", rank == 0 ? "22809" : "22907", 1);
    const OnGpu current(rank);
    context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend = Backend::nccl});
  });
  check_all(outcomes,
            {.code = ErrorCode::mismatch, .says = "rank 0: NCCL 2.28.9, no settings of NCCL; rank 1: NCCL 2.29.7"});
}

TEST_CASE("gpu processes: NCCL gets the interfaces that col is told, unless it is told its own", "[gpu]") {
  check_good(run_processes(2, [](int rank, Context& context) {
    ::setenv("COL_SOCKET_IFNAME", "none_of_that_name,lo", 1);
    if (rank == 1) ::setenv("NCCL_SOCKET_IFNAME", "eth", 1);
    const OnGpu current(rank);
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend = Backend::nccl});
    const char* const told = ::getenv("NCCL_SOCKET_IFNAME");
    expect(told != nullptr && std::string(told) == (rank == 0 ? "=lo" : "eth"), told != nullptr ? told : "nothing");
    group.barrier();
  }));
}

TEST_CASE("gpu processes: a rank is killed, and the others go on with their GPUs", "[gpu]") {
  const auto outcomes = run_processes(4, [](int rank, Context& context) {
    const OnGpu current(rank);
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = 4, .backend = Backend::nccl});
    const GpuArray<float> data(rank, std::size_t{1000}, 1.0f);
    group.allreduce(data);
    if (rank == 2) ::kill(::getpid(), SIGKILL);
    expect_error({.code = ErrorCode::peer_lost, .rank = 2}, [&] { group.allreduce(data); });
    Group three = group.shrink(std::array{2});
    expect(three.backend() == "nccl" && three.size() == 3 && three.rank() == (rank < 2 ? rank : rank - 1));
    context.destroy_group("g");
    data.set(std::vector<float>(1000, static_cast<float>(rank)));
    three.allreduce(data);
    expect(data.values() == std::vector<float>(1000, 4.0f), "the sum over ranks 0, 1 and 3");
    context.finalize();
  });
  INFO(show(outcomes));
  CHECK(outcomes[2].signal == SIGKILL);
  for (const int rank : {0, 1, 3}) CHECK(outcomes[static_cast<std::size_t>(rank)].good);
}

}  // namespace
}  // namespace col::test
