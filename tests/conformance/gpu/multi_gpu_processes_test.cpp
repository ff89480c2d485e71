// Calls over several GPUs of each rank, where ranks are processes. Nothing here may start CUDA in the parent: a forked
// child would have no driver.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "conformance/gpu/multi_gpu_calls.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using col::ErrorCode;
using col::test::check_good;
using col::test::Gpus;
using col::test::has;
using col::test::IntArrays;
using col::test::multi_body;
using col::test::Outcome;
using col::test::run_processes;

TEST_CASE("multi-gpu processes: every call is right, with one GPU a rank and with more", "[gpu]") {
  for (const auto& [ranks, each] : std::vector<std::pair<int, int>>{{2, 4}, {4, 2}, {2, 1}}) {
    CAPTURE(ranks, each);
    check_good(run_processes(ranks, multi_body(ranks, each, [](col::Group& group, const Gpus& gpus) {
                               check_reductions(group, gpus, 100);
                               check_gathering(group, gpus, 10);
                               check_scattering(group, gpus, 10);
                               check_messages(group, gpus, 10);
                             })));
  }
}

TEST_CASE("multi-gpu processes: GPUs are numbered as each process sees them", "[gpu]") {
  check_good(run_processes(2, [](int rank, col::Context& context) {
    // As colrun --gpus-per-rank 2 does: both have GPUs 0 and 1.
    ::setenv("CUDA_VISIBLE_DEVICES", rank == 0 ? "4,5" : "6,7", 1);
    const Gpus gpus({0, 1});
    const col::nccl_backend::GpuDevice::Scope scope(gpus.device(0));
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend = col::Backend::nccl});
    check_reductions(group, gpus, 10);
    const IntArrays data(gpus, 8, rank + 1);
    if (rank == 0) group.send_multigpu(data.view(0), 1, 1);
    if (rank == 1) {
      group.recv_multigpu(data.view(1), 0, 0);
      col::test::expect(data.values(1) == col::test::Ints(8, 1), "a message");
    }
    const std::string text = col::test::error_of([&] { group.send_multigpu(data.view(0), 1 - rank, 2); });
    col::test::expect(has(text, "there is no GPU 2 on rank"), text);
  }));
}

TEST_CASE("multi-gpu processes: a rank that is killed is named, before and after GPUs are connected", "[gpu]") {
  for (const bool before : {false, true}) {
    CAPTURE(before);
    const auto outcomes = run_processes(3, multi_body(3, 2, [&](col::Group& group, const Gpus& gpus) {
                                          const IntArrays data(gpus, 8, 1);
                                          if (before) group.allreduce_multigpu(data.views());
                                          group.barrier();
                                          if (group.rank() == 1) ::kill(::getpid(), SIGKILL);
                                          group.allreduce_multigpu(data.views());
                                        }));
    INFO(col::test::show(outcomes));
    CHECK(outcomes[1].signal == SIGKILL);
    for (const Outcome& outcome : {outcomes[0], outcomes[2]}) {
      CHECK(outcome.code == ErrorCode::peer_lost);
      CHECK(outcome.error_rank == 1);
      CHECK(outcome.seconds < 10);
    }
  }
}

TEST_CASE("multi-gpu processes: a sender that is killed is named to the receiver", "[gpu]") {
  const auto outcomes = run_processes(2, multi_body(2, 2, [](col::Group& group, const Gpus& gpus) {
                                        const IntArrays data(gpus, 8, 1);
                                        group.barrier();
                                        if (group.rank() == 0) ::kill(::getpid(), SIGKILL);
                                        group.recv_multigpu(data.view(1), 0, 0);
                                      }));
  INFO(col::test::show(outcomes));
  CHECK(outcomes[1].code == ErrorCode::peer_lost);
  CHECK(outcomes[1].error_rank == 0);
  CHECK(outcomes[1].seconds < 10);
}

TEST_CASE("multi-gpu processes: ranks that do not agree are told", "[gpu]") {
  const auto outcomes = run_processes(3, multi_body(3, 2, [](col::Group& group, const Gpus& gpus) {
                                        const IntArrays data(gpus, 8, 1);
                                        group.allreduce_multigpu(data.views());
                                        if (group.rank() == 2)
                                          group.broadcast_multigpu(data.views());
                                        else
                                          group.allreduce_multigpu(data.views());
                                      }));
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::mismatch);
    CHECK(outcome.error_rank == 2);
    CHECK(has(outcome.text, "rank 2 called broadcast_multigpu"));
    CHECK(outcome.seconds < 10);
  }
}
