// Communicators that NCCL does not end, and graphs that outlive them.
#include <chrono>
#include <exception>
#include <functional>
#include <latch>
#include <string>
#include <vector>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/graphs.hpp"
#include "conformance/gpu/multi_gpu.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// What a thread has been left with ends now.
void release_aborts() {
  fake_nccl_release_aborts();
  // In the blocking form, what a revoke did not come back from is left.
  REQUIRE((is_blocking() || soon([] { return fake_nccl_alive("communicators") == 0; })));
  forget_faults();
}

TEST_CASE("gpu endings: an abort that NCCL does not end holds up neither the call nor the group's end", "[gpu]") {
  const AsNccl ends;
  const auto outcomes = run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    group.allreduce(data);
    fake_nccl_hang(gpu, 1);
    fake_nccl_hang_revoke(-1);
    fake_nccl_hang_abort(-1);
    expect_error(ErrorCode::timeout, "", [&] { group.allreduce(data, {.timeout = 400ms}); });
    Context::current().destroy_group("g");
    fake_nccl_release_aborts();  // or the memory of `data` would wait for what hangs
  });
  check_good_soon(outcomes);
  release_aborts();
}

TEST_CASE("gpu endings: memory of a GPU that does not come to an end is freed in seconds all the same", "[gpu]") {
  check_good_soon(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    Group other = group.dup();
    void* const memory = group.alloc(64);
    group.barrier();
    fake_nccl_hang(gpu, 1);
    Work hangs = other.iallreduce(data, data, {.timeout = 3s});
    col::free(memory);
    expect(!hangs.test(), "it hangs");
    expect_error(ErrorCode::timeout, "", [&] { hangs.wait(); });
  }));
  REQUIRE(soon([] { return fake_nccl_alive("memory") == 0; }));
  forget_faults();
}

void expect_replay_hangs(Capture& capture) {
  bool ends = true;
  try {
    capture.replay([] { return true; });
  } catch (const std::exception&) {
    ends = false;
  }
  expect(!ends, "a graph ends without that of the other rank");
}

// A rank fails while there is a graph; the graph goes when everything else is gone.
void fail_beside_a_graph(const std::function<void(Group& group, const GpuArray<float>& data, int gpu)>& fail) {
  const AsNccl ends;
  const auto outcomes = run_gpu_ranks(2, [&](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda());
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    const Options options{.stream = {stream.get()}};
    group.allreduce(data, options);
    Capture capture(stream.get());
    group.allreduce(data, options);
    capture.end();
    capture.replay();
    fail(group, data, gpu);
    Context::current().destroy_group("g");
  });
  check_good_soon(outcomes);
}

TEST_CASE("gpu endings: a call that fails beside a graph ends, and the graph can be destroyed after the group",
          "[gpu]") {
  fail_beside_a_graph([](Group& group, const GpuArray<float>& data, int gpu) {
    fake_nccl_hang(gpu, 1);
    expect_error(ErrorCode::timeout, "", [&] { group.allreduce(data, {.timeout = 400ms}); });
  });
  forget_faults();
}

// NCCL frees what it was told to revoke without a look at graphs, in an abort too.
TEST_CASE("gpu endings: beside a graph, what NCCL does not come to an end of revoking is left, and never aborted",
          "[gpu]") {
  if (!can_revoke()) return;
  fake_nccl_reset();
  fail_beside_a_graph([](Group& group, const GpuArray<float>& data, int gpu) {
    fake_nccl_hang(gpu, 1);
    fake_nccl_hang_revoke(-1);
    expect_error(ErrorCode::timeout, "", [&] { group.allreduce(data, {.timeout = 400ms}); });
    fake_nccl_release_aborts();  // or the memory of `data` would wait for what hangs
  });
  CHECK(fake_nccl_calls("ncclCommAbort") == 0);
  forget_faults();
}

TEST_CASE("gpu endings: a group that ends before its graphs holds nobody up", "[gpu]") {
  fail_beside_a_graph([](Group& group, const GpuArray<float>&, int) { group.barrier(); });
}

// The memory of the program's waits for the GPU, and so for a graph that nothing ends.
TEST_CASE("gpu endings: the end of a group ends a graph that waits for a rank that does not launch its own", "[gpu]") {
  const AsNccl ends;
  std::latch ended(1);
  const auto outcomes = run_gpu_ranks(2, [&](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda());
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    const Options options{.stream = {stream.get()}};
    group.allreduce(data, options);
    Capture capture(stream.get());
    group.allreduce(data, options);
    capture.end();
    group.barrier();
    if (gpu == 1) return ended.wait();
    expect_replay_hangs(capture);
    Context::current().destroy_group("g");
    ended.count_down();
  });
  check_good_soon(outcomes);
  forget_faults();
}

// NCCL ends the work of all that share connections when it aborts one of them, and says nothing.
TEST_CASE("gpu endings: a group that NCCL does not end leaves those alone that it shares with", "[gpu]") {
  const AsNccl ends;
  std::latch ended(1);  // the fault is for whichever thread comes first
  const auto outcomes = run_threads(2, [&ended](int rank, Context& context) {
    const OnGpu current(rank);
    Group parent = context.init_group(
        {.name = "g", .rank = rank, .world_size = 2, .backend = Backend::nccl, .nccl_settings = "split_share=1"});
    Group child = parent.dup();
    const GpuArray<float> data(rank, std::size_t{100}, 1.0f);
    child.allreduce(data);
    parent.barrier();
    if (rank == 0) {
      fake_nccl_fail("ncclCommFinalize", ncclSystemError, 1);
      child.destroy();
      ended.count_down();
    } else {
      ended.wait();
      child.destroy();
    }
    for (int i = 0; i < 3; ++i) parent.allreduce(data);
    expect(data.values() == std::vector<float>(100, 16.0f), "the parent goes on");
  });
  forget_faults();
  check_good_soon(outcomes);
}

// Each of them would take as long as all may.
TEST_CASE("gpu endings: several communicators that NCCL does not come to revoke hold a call up as one does", "[gpu]") {
  if (!can_revoke()) return;
  const auto outcomes = run_multi(2, 4, [](Group& group, const Gpus& gpus) {
    const MultiArray<int> data(gpus, 8, 1);
    group.allreduce_multigpu(data.views());
    group.barrier();
    if (group.rank() == 0) {
      fake_nccl_hang_revoke_call(-1);
      fake_nccl_fail("ncclAllReduce", ncclSystemError, 1);
    }
    const std::string error = error_of([&] {
                                group.barrier();
                                group.barrier();
                              }).what();
    expect(has(error, "NCCL"), error);
    fake_nccl_release_aborts();  // or the memory of `data` would wait for what hangs
  });
  check_good_soon(outcomes);
  forget_faults();
}

TEST_CASE("gpu endings: what NCCL does not come back from revoking is left behind", "[gpu]") {
  if (!can_revoke()) return;
  forget_faults();
  const auto outcomes = run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    group.allreduce(data);
    group.barrier();
    fake_nccl_hang_revoke_call(-1);
    fake_nccl_hang(gpu, 1);
    expect_error(ErrorCode::timeout, "", [&] { group.allreduce(data, {.timeout = 400ms}); });
    fake_nccl_release_aborts();  // or the memory of `data` would wait for what hangs
  });
  check_good_soon(outcomes);
  forget_faults();
}

}  // namespace
}  // namespace col::test
