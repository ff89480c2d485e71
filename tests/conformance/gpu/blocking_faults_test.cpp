// The blocking form of NCCL's communicators: calls that wait inside of NCCL for a rank that never comes. In the other
// form these cases hold, too.
#include <chrono>
#include <functional>
#include <latch>
#include <vector>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/multi_gpu.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// Both ranks in a group, of which one stays away until the other one has given up.
std::vector<Outcome> stay_away(const std::function<void(Group& group, const GpuArray<float>& data)>& give_up) {
  std::latch given_up(1);
  const auto outcomes = run_gpu_ranks(2, [&](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    if (gpu == 1) return given_up.wait();
    try {
      give_up(group, data);
    } catch (...) {
      given_up.count_down();
      throw;
    }
    given_up.count_down();
  });
  return outcomes;
}

// How many calls NCCL got is counted from here on.
TEST_CASE("gpu blocking: a first call that a rank never makes ends at its deadline, and what waits comes out",
          "[gpu]") {
  const AsNccl ends;
  forget_faults();
  const auto outcomes = stay_away([](Group& group, const GpuArray<float>& data) {
    expect_error(ErrorCode::timeout, "", [&] { group.allreduce(data, {.timeout = 400ms}); });
  });
  check_good_soon(outcomes);
  if (is_blocking() && can_revoke()) {
    CHECK(fake_nccl_calls("ncclCommRevoke") >= 1);
    CHECK(fake_nccl_calls("ncclCommAbort") == 0);
    CHECK(fake_nccl_alive("communicators") == 0);
  }
  forget_faults();
  check_nothing_left();
}

TEST_CASE("gpu blocking: messages whose peer never comes end at their deadline", "[gpu]") {
  forget_faults();
  const auto outcomes = stay_away([](Group& group, const GpuArray<float>& data) {
    Work received = group.irecv(data, 1, {.timeout = 400ms});
    expect(!received.test(), "nobody sends");
    expect_error(ErrorCode::timeout, "", [&] { received.wait(); });
  });
  check_good_soon(outcomes);
  forget_faults();
  check_nothing_left();
}

// NCCL has got them, and waits for the peer, when the group ends.
TEST_CASE("gpu blocking: a group may end while messages wait in NCCL for a peer that never comes", "[gpu]") {
  forget_faults();
  const auto outcomes = stay_away([](Group& group, const GpuArray<float>& data) {
    Work received = group.irecv(data, 1);
    expect(!received.test(), "nobody sends");
    expect(!received.test(), "nobody sends");
    Context::current().destroy_group("g");
  });
  INFO(show(outcomes));
  for (const Outcome& outcome : outcomes) CHECK(outcome.seconds < kPromptSeconds);
  forget_faults();
  check_nothing_left();
}

TEST_CASE("gpu blocking: a group that a rank never makes is given up at its deadline", "[gpu]") {
  forget_faults();
  const auto outcomes = run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    if (rank == 1) fake_nccl_fail("ncclCommInitRankConfig", ncclSystemError, 1);
    context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend = Backend::nccl, .timeout = 2s});
  });
  INFO(show(outcomes));
  for (const Outcome& outcome : outcomes) CHECK(!outcome.good);
  forget_faults();
  check_nothing_left();
}

// Several GPUs have one thread.
TEST_CASE("gpu blocking: calls over several GPUs that a rank never makes end at their deadline", "[gpu]") {
  forget_faults();
  std::latch given_up(1);
  const auto outcomes = run_multi(2, 2, [&](Group& group, const Gpus& gpus) {
    const MultiArray<int> data(gpus, 8, 1);
    group.barrier();
    if (group.rank() == 1) return given_up.wait();
    const Error error = error_of([&] { group.allreduce_multigpu(data.views(), {.timeout = 400ms}); });
    given_up.count_down();
    expect(error.code() == ErrorCode::timeout, error.what());
  });
  check_good_soon(outcomes);
  forget_faults();
  check_nothing_left();
}

}  // namespace
}  // namespace col::test
