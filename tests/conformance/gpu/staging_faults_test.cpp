// What becomes of calls whose buffers are copied through the host when that fails, or takes its time. By the stand-in
// alone, which fails when it is told to.
#include <cuda.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <latch>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/graphs.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// Two ranks on two GPUs, over shared memory.
std::vector<Outcome> run_staged(const GpuBody& body) {
  fake_gpu_reset();
  const auto outcomes = run_gpu_ranks({.backend = Backend::shm}, body);
  fake_gpu_reset();
  check_none_alive({"host_memory", "device_memory", "graphs"}, {});
  return outcomes;
}

void sum_all(Group& group, int gpu) {
  const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
  group.allreduce(data);
  expect(data.values() == std::vector<float>(8, 2.0f), "the sum");
}

TEST_CASE("gpu staging faults: no page-locked memory is an error before the call, and the group goes on", "[gpu]") {
  check_good(run_staged([](Group& group, int gpu) {
    if (gpu == 1) {
      fake_gpu_fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, 1);
      expect_error("resource", [&] { sum_all(group, gpu); });
    }
    group.barrier();  // the fault has struck where it should
    sum_all(group, gpu);
  }));
}

TEST_CASE("gpu staging faults: the memory for copies is kept for the next call", "[gpu]") {
  check_good(run_staged(
      [](Group& group, int gpu) { expect_made_once(group, {"cuMemHostAlloc"}, {}, [&] { sum_all(group, gpu); }); }));
}

// Without a look at the copies' ends, of which there are as many as it takes.
TEST_CASE("gpu staging faults: a small call asks little more of the driver than its copies", "[gpu]") {
  struct Asked {
    std::size_t copies, streams_asked;
    std::size_t and_maybe = 0;  // of streams: by a wait for what has not been copied back
  };
  fake_gpu_reset();
  check_good(run_gpu_ranks({.backend = Backend::shm, .gpu = [](int) { return 0; }}, [](Group& group, int) {
    const bool counts = group.rank() == 0;  // the other has host memory, and asks for nothing
    const GpuArray<float> data(counts ? 0 : kHost, std::size_t{2}, 1.0f);
    const auto expect_asked = [&](const std::string& what, const Asked& want, const std::function<void()>& call) {
      call();
      const std::pair<const char*, std::size_t> wanted[] = {
          {"cuMemcpyAsync", want.copies},
          {"cuEventRecord", want.copies},
          {"cuStreamIsCapturing", want.streams_asked},
          {"cuPointerGetAttribute", 1},
          {"cuEventCreate", 0},
          {"cuEventDestroy_v2", 0},
          {"cuStreamCreateWithPriority", 0},
          {"cuStreamWaitEvent", 0},
          {"cuStreamSynchronize", 0},
          {"cuLaunchHostFunc", 0},
          {"cuMemAlloc_v2", 0},
          {"cuMemHostAlloc", 0},
          {"cuDevicePrimaryCtxRetain", 0},
      };
      std::vector<std::size_t> before;
      for (const auto& [name, calls] : wanted) before.push_back(fake_gpu_calls(name));
      call();
      if (!counts) return;
      for (std::size_t i = 0; i < before.size(); ++i) {
        const std::size_t calls = fake_gpu_calls(wanted[i].first) - before[i];
        const bool may_be_more = std::string_view(wanted[i].first) == "cuStreamIsCapturing";
        const std::size_t most = wanted[i].second + (may_be_more ? want.and_maybe : 0);
        expect(calls >= wanted[i].second && calls <= most,
               fmt::format("{} calls {} {} times, not {}", what, wanted[i].first, calls, wanted[i].second));
      }
    };
    expect_asked("allreduce", {.copies = 2, .streams_asked = 2}, [&] { group.allreduce(data); });
    expect_asked("iallreduce", {.copies = 2, .streams_asked = 2, .and_maybe = 1},
                 [&] { group.iallreduce(data, data).wait(); });
    expect_asked("broadcast", {.copies = 1, .streams_asked = 1}, [&] { group.broadcast(data); });
    const auto message = [&](int from) {
      return group.rank() == from ? group.send(data, 1 - from) : group.recv(data, from);
    };
    expect_asked("send", {.copies = 1, .streams_asked = 1}, [&] { message(0); });
    expect_asked("recv", {.copies = 1, .streams_asked = 2}, [&] { message(1); });
  }));
  fake_gpu_reset();
}

TEST_CASE("gpu staging faults: a copy that fails breaks the group on every rank", "[gpu]") {
  for (const char* when : {"before", "after"}) {
    INFO(when);
    const auto outcomes = run_staged([&](Group& group, int gpu) {
      const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
      group.barrier();
      // The copy to the host, or the one back.
      if (gpu == 1) fake_gpu_fail("cuMemcpyAsync", CUDA_ERROR_ILLEGAL_ADDRESS, std::string(when) == "before" ? 1 : 3);
      group.barrier();
      group.allreduce(data);
      group.barrier();
      group.allreduce(data);
    });
    check_all(outcomes, {.code = ErrorCode::io, .says = "cannot copy between the GPU and the host"});
  }
}

TEST_CASE("gpu staging faults: an asynchronous call does not wait for what is in the stream before it", "[gpu]") {
  std::latch looked(2);
  check_good(run_staged([&](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f), out(gpu, std::size_t{8}, 0.0f);
    const nccl_backend::GpuStream stream(cuda());
    group.barrier();
    if (gpu == 0) fake_gpu_hold_streams(1);
    group.barrier();
    Work first = group.iallreduce(data, out, {.stream = {stream.get()}});
    expect(!first.test(), "it has ended before its input was there");
    looked.arrive_and_wait();
    if (gpu == 0) fake_gpu_hold_streams(0);
    first.wait();
    expect(out.values() == std::vector<float>(8, 2.0f), "the sum");
  }));
}

TEST_CASE("gpu staging faults: a GPU that does not come to the copy is given up at the deadline", "[gpu]") {
  const bool asynchronous = GENERATE(false, true);
  const auto outcomes = run_staged([&](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    const nccl_backend::GpuStream stream(cuda());
    group.barrier();
    if (gpu == 0) fake_gpu_hold_streams(1);
    group.barrier();
    try {
      const Options options{.timeout = 400ms, .stream = {stream.get()}};
      if (asynchronous)
        group.iallreduce(data, data, options).wait();
      else
        group.allreduce(data, options);
    } catch (const Error&) {
      fake_gpu_hold_streams(0);
      throw;
    }
  });
  check_all(outcomes, {.code = ErrorCode::timeout, .promptly = true});
}

TEST_CASE("gpu staging faults: a stream that is being captured is refused, and the group goes on", "[gpu]") {
  check_good(run_staged([](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    {
      const nccl_backend::GpuStream stream(cuda());
      const Capture capture(stream.get(), CU_STREAM_CAPTURE_MODE_RELAXED);
      expect_error("cannot be part of a graph", [&] { group.allreduce(data, {.stream = {stream.get()}}); });
    }
    sum_all(group, gpu);
  }));
}

TEST_CASE("gpu staging faults: pieces of a long call are copied while others wait for their peers", "[gpu]") {
  fake_gpu_reset();
  check_good(run_gpu_ranks({.backend = Backend::shm, .gpu = [](int) { return 0; }}, [](Group& group, int) {
    const int rank = group.rank();
    constexpr std::size_t kCount = std::size_t{16} << 20;  // of sixteen pieces
    const GpuArray<float> data(rank == 0 ? 0 : kHost, kCount, 1.0f);
    group.barrier();
    const std::size_t before = fake_gpu_calls("cuMemcpyAsync");
    group.barrier();
    if (rank == 1) {  // until this rank comes, the other copies those that may be in flight
      const Deadline deadline = Deadline::after(kDeadline);
      while (fake_gpu_calls("cuMemcpyAsync") < before + 3) expect(!deadline.expired(), "no more pieces are copied");
      expect(fake_gpu_calls("cuMemcpyAsync") == before + 3, "as many as may be in flight");
    }
    group.allreduce(data);
    expect(data.values() == std::vector<float>(kCount, 2.0f), "the sum");
  }));
}

TEST_CASE("gpu staging faults: a long call that runs out of memory half way ends on all ranks", "[gpu]") {
  const auto outcomes = run_staged([](Group& group, int gpu) {
    const GpuArray<float> data(gpu == 0 ? 0 : kHost, std::size_t{8} << 20, 1.0f);
    if (gpu == 0) fake_gpu_fail("cuMemHostAlloc", 2, 3);  // out of memory, for the third piece
    expect_error("resource", [&] { group.allreduce(data); });
    expect_error("broke before", [&] { group.barrier(); });
  });
  check_good_soon(outcomes);
}

TEST_CASE("gpu staging faults: a long message is posted before it has been copied, and ends with its copy", "[gpu]") {
  check_good(run_staged([](Group& group, int gpu) {
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
    Work sent = group.isend(data, 1);  // would wait for the copy, whole
    expect(!sent.test(), "nothing has been copied");
    fake_gpu_hold_streams(0);
    group.barrier();
    sent.wait();
  }));
}

TEST_CASE("gpu staging faults: a copy of a long message that fails breaks the group on all ranks", "[gpu]") {
  const auto outcomes = run_staged([](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{4} << 20, 1.0f);
    group.barrier();
    if (gpu == 1) return group.recv(data, 0);
    fake_gpu_hold_streams(1);
    Work sent = group.isend(data, 1);
    fake_gpu_fail("cuEventQuery", 719, 1);  // an illegal access, as the copy's end is asked for
    fake_gpu_hold_streams(0);
    sent.wait();
  });
  INFO(show(outcomes));
  CHECK(outcomes[0].code == ErrorCode::io);
  CHECK(outcomes[1].code.has_value());
  CHECK(outcomes[1].seconds < kPromptSeconds);
}

TEST_CASE("gpu staging faults: no room for alloc on one GPU is an error on all ranks, and the group goes on", "[gpu]") {
  fake_nccl_reset();
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    if (gpu == 1) fake_nccl_fail("ncclMemAlloc", 1, 1);
    if (gpu == 0) group.barrier();
    const std::string error = error_of([&] {
                                if (gpu == 1) group.barrier();
                                (void)group.alloc(64);
                              }).what();
    expect(has(error, "resource"), "no memory");
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    group.allreduce(data);
    void* const memory = group.alloc(64);
    col::free(memory);
  }));
  CHECK(fake_nccl_alive("memory") == 0);
  CHECK(fake_nccl_alive("windows") == 0);
}

// NCCL of the other rank goes on with the registration, and writes to the memory's object, when the error comes.
TEST_CASE("gpu staging faults: an alloc that one rank cannot register ends on all, and leaves no memory", "[gpu]") {
  const auto outcomes = run_gpu_ranks(2, [](Group& group, int gpu) {
    group.barrier();
    if (gpu == 1) fake_nccl_fail("ncclCommWindowRegister", ncclSystemError, 1);
    (void)group.alloc(64, {.timeout = 3s});
  });
  forget_faults();
  INFO(show(outcomes));
  CHECK(std::ranges::count(outcomes, ErrorCode::io, &Outcome::code) == 1);
  CHECK(std::ranges::count(outcomes, ErrorCode::timeout, &Outcome::code) == 1);
  CHECK(fake_nccl_alive("memory") == 0);
}

}  // namespace
}  // namespace col::test
