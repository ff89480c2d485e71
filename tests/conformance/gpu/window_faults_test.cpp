// Memory of alloc() is freed while another thread is inside NCCL, or NCCL is taking messages.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "backend/capabilities.hpp"
#include "conformance/backend/backend_ranks.hpp"
#include "conformance/gpu/faults.hpp"
#include "support/fork.hpp"
#include "support/prompt.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using Floats = GpuArray<float>;

constexpr std::size_t kSome = 1000;

// Both sides of a channel of two ranks, on two GPUs, and memory of each.
struct Pair {
  struct Side {
    std::unique_ptr<Channel> channel;
    std::shared_ptr<void> memory;
  };

  // Each is connected in a thread of its own, as it waits for the other.
  Pair() {
    const auto store = make_memory_store();
    const auto connect = [&](int rank) {
      const OnGpu current(rank);
      Side& side = sides[rank];
      side.channel = connect_rank(*find_device_backend(), store, rank, 2);
      WaitContext wait(Deadline::after(kDeadline));
      const auto nobody_has_a_problem = [](const std::string&) { return std::vector<std::string>(2); };
      side.memory = side.channel->can().allocation->allocate(1000, nobody_has_a_problem, wait);
    };
    std::future<void> other = std::async(std::launch::async, connect, 1);
    connect(0);
    other.get();
  }
  ~Pair() {
    std::future<void> other = std::async(std::launch::async, [&] { sides[1] = {}; });
    sides[0] = {};
    other.get();
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  Side sides[2];
};

void run_barrier(Channel& channel, int rank) {
  const OnGpu current(rank);
  WaitContext wait(Deadline::after(kDeadline));
  channel.native({.collective = Collective::barrier}, wait);
}

Request sum_of(TensorView data) {
  return {.collective = Collective::allreduce, .in = data, .out = data};
}

void run_sum(Channel& channel, int rank, const TensorView& data) {
  const OnGpu current(rank);
  WaitContext wait(Deadline::after(kDeadline));
  channel.native(sum_of(data), wait);
}

TEST_CASE("gpu windows: memory that is freed beside a call waits for the thread that is inside NCCL", "[gpu]") {
  need_own_gpus(2);
  forget_faults();
  {
    Pair pair;
    const std::size_t launches = fake_nccl_launches();
    std::future<void> inside = std::async(std::launch::async, run_barrier, std::ref(*pair.sides[0].channel), 0);
    REQUIRE(soon([&] { return fake_nccl_launches() > launches; }));
    std::future<void> freed = std::async(std::launch::async, [&] { pair.sides[0].memory.reset(); });
    // The other rank does not come before, so that the thread is inside all that time.
    CHECK(freed.wait_for(200ms) == std::future_status::timeout);
    CHECK(fake_nccl_calls("ncclCommWindowDeregister") == 0);
    run_barrier(*pair.sides[1].channel, 1);
    inside.get();
    freed.get();
    CHECK(fake_nccl_calls("ncclCommWindowDeregister") == 1);
    CHECK(fake_nccl_alive("memory") == 1);
  }
  CHECK(fake_nccl_alive("memory") == 0);
  CHECK(fake_nccl_alive("windows") == 0);
}

TEST_CASE("gpu windows: memory that is freed beside a call does not wait for the end of it", "[gpu]") {
  need_own_gpus(2);
  forget_faults();
  {
    Pair pair;
    const std::size_t launches = fake_nccl_launches();
    std::future<void> inside = std::async(std::launch::async, run_barrier, std::ref(*pair.sides[0].channel), 0);
    REQUIRE(soon([&] { return fake_nccl_launches() > launches; }));
    std::future<void> freed = std::async(std::launch::async, [&] { pair.sides[0].memory.reset(); });
    CHECK(freed.wait_for(kPrompt) == std::future_status::ready);
    CHECK(fake_nccl_calls("ncclCommWindowDeregister") == 0);
    run_barrier(*pair.sides[1].channel, 1);
    inside.get();
    REQUIRE(soon([] { return fake_nccl_alive("memory") == 1; }));
    CHECK(fake_nccl_calls("ncclCommWindowDeregister") == 1);
  }
  CHECK(fake_nccl_alive("memory") == 0);
  CHECK(fake_nccl_alive("windows") == 0);
}

// A thread of NCCL's calls waits for the other rank: the one that waits for it keeps the channel from nobody.
TEST_CASE("gpu blocking: others look at a channel while a thread waits for a call that is inside of NCCL",
          "[gpu][.blocking]") {  // hidden, so that it runs where the form is asked for by name
  REQUIRE(is_blocking());
  need_own_gpus(2);
  forget_faults();
  Pair pair;
  const std::size_t launches = fake_nccl_launches();
  std::future<void> inside = std::async(std::launch::async, run_barrier, std::ref(*pair.sides[0].channel), 0);
  REQUIRE(soon([&] { return fake_nccl_launches() > launches; }));
  std::future<void> looked = std::async(std::launch::async, [&] { pair.sides[0].channel->can().holding->hand_over(); });
  CHECK(looked.wait_for(kPrompt) == std::future_status::ready);
  run_barrier(*pair.sides[1].channel, 1);
  inside.get();
}

TEST_CASE("gpu windows: a channel that breaks while NCCL takes memory back is aborted after that", "[gpu]") {
  need_own_gpus(2);
  forget_faults();
  {
    Pair pair;
    const Floats first(0, kSome, 1.0f), second(1, kSome, 1.0f);
    std::future<void> other =
        std::async(std::launch::async, run_sum, std::ref(*pair.sides[1].channel), 1, TensorView(second));
    run_sum(*pair.sides[0].channel, 0, first);
    other.get();
    Channel& channel = *pair.sides[0].channel;
    WaitContext wait(Deadline::after(kDeadline));
    (void)channel.start_native(sum_of(first), wait);
    fake_nccl_hang_deregister(0);
    std::future<void> freed = std::async(std::launch::async, [&] { pair.sides[0].memory.reset(); });
    REQUIRE(soon([] { return fake_nccl_calls("ncclCommWindowDeregister") == 1; }));
    channel.abort(Error(ErrorCode::peer_lost, "it is gone"));
    CHECK(fake_nccl_running() > 0);
    CHECK(freed.wait_for(kPrompt) == std::future_status::ready);
    fake_nccl_release_aborts();
    REQUIRE(soon([] { return fake_nccl_running() == 0; }));
    REQUIRE(soon([] { return fake_nccl_alive("memory") == 1; }));
  }
  CHECK(fake_nccl_alive("memory") == 0);
}

TEST_CASE("gpu windows: memory that a forked child has asks the driver for nothing", "[gpu]") {
  need_own_gpus(2);
  Pair pair;
  const pid_t child = fork_at_rest();
  if (child == 0) {
    const auto asked = [] {
      return fake_gpu_calls("cuDevicePrimaryCtxRelease_v2") + fake_gpu_calls("cuThreadExchangeStreamCaptureMode");
    };
    const std::size_t before = asked();
    pair.sides[0].memory.reset();
    ::_exit(asked() == before ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("gpu windows: memory that is freed waits for messages that NCCL is taking", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const Floats out(gpu, std::size_t{1000}, 1.0f), in(gpu, std::size_t{1000}, 0.0f);
    for (int i = 0; i < 20; ++i) {
      void* const memory = group.alloc(64);
      Work sent = group.isend(out, 1 - gpu), received = group.irecv(in, 1 - gpu);
      (void)received.test();  // NCCL gets them
      col::free(memory);
      received.wait();
      sent.wait();
    }
    group.barrier();
    expect(fake_nccl_alive("windows") == 0, "NCCL has taken every one back");
    group.barrier();
  }));
}

TEST_CASE("gpu windows: memory that outlives its channel is freed", "[gpu]") {
  need_own_gpus(2);
  std::shared_ptr<void> kept;
  {
    Pair pair;
    kept = pair.sides[0].memory;
  }
  CHECK(fake_nccl_alive("windows") == 0);
  CHECK(fake_nccl_alive("memory") == 1);
  kept.reset();
  CHECK(fake_nccl_alive("memory") == 0);
}

}  // namespace
}  // namespace col::test
