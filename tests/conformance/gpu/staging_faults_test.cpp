// What becomes of calls whose buffers are copied through the host when that fails, or takes its time. By the stand-in
// alone, which fails when it is told to.
#include <cuda.h>

#include <chrono>
#include <functional>
#include <latch>
#include <string>
#include <vector>

#include "backend/nccl/shared_library.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"

using namespace std::chrono_literals;
using col::ErrorCode;
using col::test::check_good;
using col::test::error_of;
using col::test::expect;
using col::test::GpuArray;
using col::test::has;
using col::test::Outcome;

namespace {

// Two ranks on two GPUs, over shared memory.
std::vector<Outcome> run_staged(const std::function<void(col::Group& group, int gpu)>& body) {
  fake_gpu_reset();
  const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
    const col::nccl_backend::GpuDevice device(col::test::cuda(), rank);
    const col::nccl_backend::GpuDevice::Scope scope(device);
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend = col::Backend::shm});
    body(group, rank);
  });
  fake_gpu_reset();
  for (const char* what : {"host_memory", "device_memory", "graphs"}) {
    INFO(what);
    CHECK(fake_gpu_alive(what) == 0);
  }
  return outcomes;
}

void sum_all(col::Group& group, int gpu) {
  const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
  group.allreduce(data);
  expect(data.values() == std::vector<float>(8, 2.0f), "the sum");
}

}  // namespace

TEST_CASE("gpu staging faults: no page-locked memory is an error before the call, and the group goes on", "[gpu]") {
  check_good(run_staged([](col::Group& group, int gpu) {
    if (gpu == 1) {
      fake_gpu_fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, 1);
      expect(has(error_of([&] { sum_all(group, gpu); }), "resource"), "no memory");
    }
    group.barrier();  // the fault has struck where it should
    sum_all(group, gpu);
  }));
}

TEST_CASE("gpu staging faults: the memory for copies is kept for the next call", "[gpu]") {
  check_good(run_staged([](col::Group& group, int gpu) {
    sum_all(group, gpu);
    group.barrier();
    const std::size_t before = fake_gpu_calls("cuMemHostAlloc");
    group.barrier();  // nobody is past `before` until all have taken it
    for (int i = 0; i < 5; ++i) sum_all(group, gpu);
    group.barrier();
    expect(fake_gpu_calls("cuMemHostAlloc") == before, "it allocates");
    group.barrier();
  }));
}

TEST_CASE("gpu staging faults: a copy that fails breaks the group on every rank", "[gpu]") {
  for (const char* when : {"before", "after"}) {
    INFO(when);
    const auto outcomes = run_staged([&](col::Group& group, int gpu) {
      const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
      group.barrier();
      // The copy to the host, or the one back.
      if (gpu == 1) fake_gpu_fail("cuMemcpyAsync", CUDA_ERROR_ILLEGAL_ADDRESS, std::string(when) == "before" ? 1 : 3);
      group.barrier();
      group.allreduce(data);
      group.barrier();
      group.allreduce(data);
    });
    INFO(col::test::show(outcomes));
    for (const Outcome& outcome : outcomes) {
      CHECK(outcome.code == ErrorCode::io);
      CHECK(has(outcome.text, "cannot copy between the GPU and the host"));
    }
  }
}

TEST_CASE("gpu staging faults: an asynchronous call does not wait for what is in the stream before it", "[gpu]") {
  std::latch looked(2);
  check_good(run_staged([&](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f), out(gpu, std::size_t{8}, 0.0f);
    const col::nccl_backend::GpuStream stream(col::test::cuda());
    group.barrier();
    if (gpu == 0) fake_gpu_hold_streams(1);
    group.barrier();
    col::Work first = group.iallreduce(data, out, {.stream = {stream.get()}});
    expect(!first.test(), "it has ended before its input was there");
    looked.arrive_and_wait();
    if (gpu == 0) fake_gpu_hold_streams(0);
    first.wait();
    expect(out.values() == std::vector<float>(8, 2.0f), "the sum");
  }));
}

TEST_CASE("gpu staging faults: a GPU that does not come to the copy is given up at the deadline", "[gpu]") {
  const bool asynchronous = GENERATE(false, true);
  const auto outcomes = run_staged([&](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    const col::nccl_backend::GpuStream stream(col::test::cuda());
    group.barrier();
    if (gpu == 0) fake_gpu_hold_streams(1);
    group.barrier();
    try {
      const col::Options options{.timeout = 400ms, .stream = {stream.get()}};
      if (asynchronous)
        group.iallreduce(data, data, options).wait();
      else
        group.allreduce(data, options);
    } catch (const col::Error&) {
      fake_gpu_hold_streams(0);
      throw;
    }
  });
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::timeout);
    CHECK(outcome.seconds < 15);
  }
}

TEST_CASE("gpu staging faults: a stream that is being captured is refused, and the group goes on", "[gpu]") {
  check_good(run_staged([](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    {
      const col::nccl_backend::GpuStream stream(col::test::cuda());
      const col::nccl_backend::SharedLibrary library("CUDA driver", {"libcuda.so.1"});
      decltype(&::cuStreamBeginCapture) begin = nullptr;
      decltype(&::cuStreamEndCapture) end = nullptr;
      decltype(&::cuGraphDestroy) destroy = nullptr;
      library.bind("cuStreamBeginCapture_v2", begin);
      library.bind("cuStreamEndCapture", end);
      library.bind("cuGraphDestroy", destroy);
      col::test::cuda().check(begin(stream.get(), CU_STREAM_CAPTURE_MODE_RELAXED), "begin");
      expect(has(error_of([&] { group.allreduce(data, {.stream = {stream.get()}}); }), "cannot be part of a graph"),
             "a captured stream");
      CUgraph graph = nullptr;
      col::test::cuda().check(end(stream.get(), &graph), "end");
      if (graph != nullptr) destroy(graph);
    }
    sum_all(group, gpu);
  }));
}

TEST_CASE("gpu staging faults: pieces of a long call are copied while others wait for their peers", "[gpu]") {
  fake_gpu_reset();
  check_good(col::test::run_threads(2, [](int rank, col::Context& context) {
    const col::nccl_backend::GpuDevice device(col::test::cuda(), 0);
    const col::nccl_backend::GpuDevice::Scope scope(device);
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend = col::Backend::shm});
    constexpr std::size_t kCount = std::size_t{16} << 20;  // of sixteen pieces
    const GpuArray<float> data(rank == 0 ? 0 : col::test::kHost, kCount, 1.0f);
    group.barrier();
    const std::size_t before = fake_gpu_calls("cuMemcpyAsync");
    group.barrier();
    if (rank == 1) {  // until this rank comes, the other copies those that may be in flight
      const col::Deadline deadline = col::Deadline::after(10s);
      while (fake_gpu_calls("cuMemcpyAsync") < before + 3) expect(!deadline.expired(), "no more pieces are copied");
      expect(fake_gpu_calls("cuMemcpyAsync") == before + 3, "as many as may be in flight");
    }
    group.allreduce(data);
    expect(data.values() == std::vector<float>(kCount, 2.0f), "the sum");
  }));
}

TEST_CASE("gpu staging faults: a long call that runs out of memory half way ends on all ranks", "[gpu]") {
  const auto outcomes = run_staged([](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu == 0 ? 0 : col::test::kHost, std::size_t{8} << 20, 1.0f);
    if (gpu == 0) fake_gpu_fail("cuMemHostAlloc", 2, 3);  // out of memory, for the third piece
    const std::string error = error_of([&] { group.allreduce(data); });
    expect(has(error, "resource"), error);
    expect(has(error_of([&] { group.barrier(); }), "broke before"), "the group is broken");
  });
  check_good(outcomes);
  CHECK(outcomes[1].seconds < 10);
}

TEST_CASE("gpu staging faults: a long message is posted before it has been copied, and ends with its copy", "[gpu]") {
  check_good(run_staged([](col::Group& group, int gpu) {
    const std::size_t count = std::size_t{4} << 20;
    const GpuArray<float> data(gpu, count, static_cast<float>(gpu));
    group.barrier();
    if (gpu == 1) {
      group.barrier();
      group.recv(data, 0);
      expect(data.values() == std::vector<float>(count, 0.0f), "what was sent");
      return;
    }
    fake_gpu_hold_streams(1);
    col::Work sent = group.isend(data, 1);  // would wait for the copy, whole
    expect(!sent.test(), "nothing has been copied");
    fake_gpu_hold_streams(0);
    group.barrier();
    sent.wait();
  }));
}

TEST_CASE("gpu staging faults: a copy of a long message that fails breaks the group on all ranks", "[gpu]") {
  const auto outcomes = run_staged([](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{4} << 20, 1.0f);
    group.barrier();
    if (gpu == 1) return group.recv(data, 0);
    fake_gpu_hold_streams(1);
    col::Work sent = group.isend(data, 1);
    fake_gpu_fail("cuEventQuery", 719, 1);  // an illegal access, as the copy's end is asked for
    fake_gpu_hold_streams(0);
    sent.wait();
  });
  INFO(col::test::show(outcomes));
  CHECK(outcomes[0].code == ErrorCode::io);
  CHECK(outcomes[1].code.has_value());
  CHECK(outcomes[1].seconds < 10);
}

TEST_CASE("gpu staging faults: no room for alloc on one GPU is an error on all ranks, and the group goes on", "[gpu]") {
  fake_nccl_reset();
  const auto outcomes = col::test::run_gpu_ranks(2, [](col::Group& group, int gpu) {
    if (gpu == 1) fake_nccl_fail("ncclMemAlloc", 1, 1);
    if (gpu == 0) group.barrier();
    const std::string error = error_of([&] {
      if (gpu == 1) group.barrier();
      (void)group.alloc(64);
    });
    expect(has(error, "resource"), "no memory");
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    group.allreduce(data);
    void* const memory = group.alloc(64);
    col::free(memory);
  });
  check_good(outcomes);
  CHECK(fake_nccl_alive("memory") == 0);
  CHECK(fake_nccl_alive("windows") == 0);
}
