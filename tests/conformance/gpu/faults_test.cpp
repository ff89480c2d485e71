// What CUDA and NCCL report when they fail, as errors of ours; and that nothing is left behind. By the stand-ins alone,
// which fail when they are told to.
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/nothing_left.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"

using namespace std::chrono_literals;
using col::ErrorCode;
using col::test::check_nothing_left;
using col::test::GpuArray;
using col::test::Outcome;
using col::test::run_gpu_ranks;

namespace {

void sum(col::Group& group, int gpu) {
  const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
  group.allreduce(data);
}

}  // namespace

TEST_CASE("gpu faults: a group that ends well leaves nothing behind", "[gpu]") {
  const auto outcomes = run_gpu_ranks(4, [](col::Group& group, int gpu) {
    sum(group, gpu);
    group.barrier();
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  check_nothing_left();
}

TEST_CASE("gpu faults: the second call of a kind allocates nothing", "[gpu]") {
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    group.allreduce(data);
    group.barrier();
    const std::size_t before = fake_gpu_calls("cuMemAlloc_v2") + fake_gpu_calls("cuEventCreate");
    group.barrier();  // nobody is past `before` until all have taken it
    for (int i = 0; i < 10; ++i) group.allreduce(data);
    group.barrier();
    col::test::expect(fake_gpu_calls("cuMemAlloc_v2") + fake_gpu_calls("cuEventCreate") == before, "it allocates");
    group.barrier();
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("gpu faults: a message comes after what its stream holds", "[gpu]") {
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    constexpr std::size_t kCount = std::size_t{1} << 22;
    const GpuArray<float> data(gpu, kCount, 1.0f), later(gpu, kCount, 2.0f);
    const col::nccl_backend::GpuStream stream(col::test::cuda());
    for (int i = 0; i < 5; ++i) {
      group.barrier();
      if (gpu == 1) {
        group.recv(data, 0);
        col::test::expect(data.values() == std::vector<float>(kCount, 2.0f), "what the stream had written by then");
        continue;
      }
      data.set(std::vector<float>(kCount, 1.0f));
      fake_gpu_hold_streams(1);
      const col::TensorView to = data, from = later;
      col::test::cuda().check(
          col::test::cuda().MemcpyAsync(reinterpret_cast<CUdeviceptr>(to.data),
                                        reinterpret_cast<CUdeviceptr>(from.data), to.bytes(), stream.get()),
          "copy");
      col::Work sent = group.isend(data, 1, {.stream = {stream.get()}});
      col::test::expect(!sent.test(), "the stream holds");
      fake_gpu_hold_streams(0);
      sent.wait();
    }
  });
  fake_gpu_reset();
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("gpu faults: the streams of a group have the highest priority when it is made so", "[gpu]") {
  const auto outcomes = col::test::run_threads(2, [](int rank, col::Context& context) {
    const col::nccl_backend::GpuDevice device(col::test::cuda(), rank);
    const col::nccl_backend::GpuDevice::Scope scope(device);
    const auto count = [](col::Group& group) {
      group.barrier();
      const std::size_t streams = fake_gpu_alive("high_priority_streams");
      group.barrier();  // nobody makes more until both have counted
      return streams;
    };
    const auto make = [&](const char* name, bool high) {
      return context.init_group({.name = name,
                                 .rank = rank,
                                 .world_size = 2,
                                 .backend = col::Backend::nccl,
                                 .is_high_priority_stream = high});
    };
    col::Group normal = make("normal", false);
    col::test::expect(count(normal) == 0, "none unless asked for");
    col::Group high = make("high", true);
    col::test::expect(count(high) == 2, "one on each GPU");
    col::Group child = high.dup();
    col::test::expect(count(child) == 4, "groups made from it as well");
    const GpuArray<float> data(rank, std::size_t{8}, 1.0f);
    const std::vector<col::TensorView> tensors{data};
    high.allreduce_multigpu(tensors);
    col::test::expect(count(high) == 6, "calls over several GPUs as well");
    col::test::expect(data.values() == std::vector<float>(8, 2.0f), "the sum");
    // The ranks need not agree, and a group over the host does not look at it.
    col::Group odd = make("odd", rank == 0);
    col::test::expect(count(odd) == 7, "one on the GPU of rank 0");
    col::Group host = context.init_group({.name = "host",
                                          .rank = rank,
                                          .world_size = 2,
                                          .backend = col::Backend::gloo,
                                          .is_high_priority_stream = true});
    col::test::expect(count(host) == 7, "no stream for the host");
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  check_nothing_left();
}

TEST_CASE("gpu faults: a world of one has a stream of the highest priority when it is made so", "[gpu]") {
  const auto outcomes = col::test::run_threads(1, [](int rank, col::Context& context) {
    const col::nccl_backend::GpuDevice device(col::test::cuda(), rank);
    const col::nccl_backend::GpuDevice::Scope scope(device);
    col::Group alone =
        context.init_group({.name = "alone", .backend = col::Backend::nccl, .is_high_priority_stream = true});
    col::test::expect(fake_gpu_alive("high_priority_streams") == 1, "its stream");
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("gpu faults: a driver that does not tell its priorities is an io error", "[gpu]") {
  fake_gpu_reset();
  fake_gpu_fail("cuCtxGetStreamPriorityRange", CUDA_ERROR_UNKNOWN, 1);
  const auto outcomes = col::test::run_threads(1, [](int rank, col::Context& context) {
    const col::nccl_backend::GpuDevice device(col::test::cuda(), rank);
    const col::nccl_backend::GpuDevice::Scope scope(device);
    context.init_group({.name = "alone", .backend = col::Backend::nccl, .is_high_priority_stream = true});
  });
  fake_gpu_reset();
  INFO(col::test::show(outcomes));
  CHECK(outcomes[0].code == ErrorCode::io);
  CHECK(outcomes[0].text.find("priorities of CUDA streams") != std::string::npos);
  check_nothing_left();
}

TEST_CASE("gpu faults: an error of NCCL is translated, and ends the call on every rank", "[gpu]") {
  struct Fault {
    ncclResult_t code;
    ErrorCode expected;
  };
  for (const Fault& fault :
       {Fault{ncclSystemError, ErrorCode::io}, Fault{ncclUnhandledCudaError, ErrorCode::io},
        Fault{ncclRemoteError, ErrorCode::peer_lost}, Fault{ncclInternalError, ErrorCode::internal},
        Fault{ncclInvalidUsage, ErrorCode::unavailable}}) {
    fake_nccl_reset();
    fake_nccl_fail("ncclAllReduce", fault.code, 1);
    const auto outcomes = run_gpu_ranks(2, sum);
    INFO(col::test::show(outcomes));
    for (const Outcome& outcome : outcomes) {
      CHECK(outcome.code == fault.expected);
      CHECK(outcome.text.find("nccl: cannot start the allreduce") != std::string::npos);
      CHECK(outcome.seconds < 15);
    }
    check_nothing_left();
  }
}

TEST_CASE("gpu faults: what NCCL finds in the background ends a call that hangs", "[gpu]") {
  fake_nccl_reset();
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    fake_nccl_hang(gpu, 1);
    if (gpu == 0) fake_nccl_async_error(0, ncclRemoteError);
    sum(group, gpu);
  });
  fake_nccl_reset();
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) CHECK(outcome.code == ErrorCode::peer_lost);
  check_nothing_left();
}

TEST_CASE("gpu faults: an operation that never ends is given up at its deadline", "[gpu]") {
  fake_nccl_reset();
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    fake_nccl_hang(gpu, 1);
    group.allreduce(data, {.timeout = 400ms});
  });
  fake_nccl_reset();
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::timeout);
    CHECK(outcome.seconds < 15);
  }
  CHECK(fake_nccl_running() == 0);
  check_nothing_left();
}

namespace {

bool can_revoke() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess && version >= 22807;
}

// Both ranks give up an operation that hangs; how their communicators end is counted from here on.
void give_up_what_hangs(void prepare() = [] {}) {
  const auto outcomes = run_gpu_ranks(2, [&](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    fake_nccl_hang(gpu, 1);
    prepare();
    group.allreduce(data, {.timeout = 400ms});
  });
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::timeout);
    CHECK(outcome.seconds < 15);
  }
  CHECK(fake_nccl_running() == 0);
  check_nothing_left();
}

}  // namespace

TEST_CASE("gpu faults: what is given up is revoked where NCCL can, and aborted elsewhere", "[gpu]") {
  fake_nccl_reset();
  give_up_what_hangs();
  CHECK(fake_nccl_calls("ncclCommRevoke") == (can_revoke() ? 2 : 0));
  CHECK(fake_nccl_calls("ncclCommAbort") == (can_revoke() ? 0 : 2));
}

TEST_CASE("gpu faults: where revoking fails, or does not end, the communicator is aborted", "[gpu]") {
  fake_nccl_reset();
  SECTION("it fails") {
    for (const int nth : {1, 2}) fake_nccl_fail("ncclCommRevoke", ncclInternalError, nth);
    give_up_what_hangs();
  }
  SECTION("it hangs") {
    give_up_what_hangs([] { fake_nccl_hang_revoke(-1); });
  }
  CHECK(fake_nccl_calls("ncclCommAbort") == 2);
  fake_nccl_reset();
}

TEST_CASE("gpu faults: an error among messages that start together does not spoil the next group", "[gpu]") {
  fake_nccl_reset();
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f), other(gpu, std::size_t{8}, 2.0f);
    if (gpu == 0) fake_nccl_fail("ncclSend", ncclSystemError, 1);
    bool failed = false;
    try {
      group.sendrecv(data, 1 - gpu, other, 1 - gpu);
    } catch (const col::Error&) {
      failed = true;
    }
    col::test::expect(failed, "nothing failed");
    col::Group again = col::Context::current().init_group(
        {.name = "again", .rank = gpu, .world_size = 2, .backend = col::Backend::nccl});
    again.allreduce(data);
    col::test::expect(data.values() == std::vector<float>(8, 2.0f), "the sum in the next group");
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  check_nothing_left();
}

TEST_CASE("gpu faults: a rank that comes late to a message is waited for", "[gpu]") {
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, static_cast<float>(gpu));
    static std::latch waits(1);
    if (gpu == 0) {
      waits.count_down();
      group.recv(data, 1);
      col::test::expect(data.values() == std::vector<float>(8, 1.0f), "what was sent");
    } else {
      waits.wait();
      std::this_thread::sleep_for(500ms);  // the subject of the test: longer than a call takes to be called slow
      group.send(data, 0);
    }
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("gpu faults: want of memory is a resource error", "[gpu]") {
  fake_gpu_reset();
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    group.barrier();
    if (gpu == 1) fake_gpu_fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY, 1);
    group.alltoall(data, data);  // in place it needs a copy
  });
  fake_gpu_reset();
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) CHECK(outcome.code == ErrorCode::resource);
  check_nothing_left();
}

TEST_CASE("gpu faults: memory that grows takes what is needed when there is no room for more", "[gpu]") {
  fake_gpu_reset();
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    const GpuArray<float> few(gpu, std::size_t{8}, static_cast<float>(gpu)),
        more(gpu, std::size_t{12}, static_cast<float>(gpu));
    group.alltoall(few, few);
    if (gpu == 1) fake_gpu_fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY, 1);
    group.alltoall(more, more);
    std::vector<float> want(12, 0.0f);
    std::fill(want.begin() + 6, want.end(), 1.0f);
    col::test::expect(more.values() == want, "what was exchanged");
  });
  fake_gpu_reset();
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  check_nothing_left();
}

TEST_CASE("gpu faults: a device that broke is an io error that says where to look", "[gpu]") {
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    group.barrier();
    if (gpu == 1) fake_gpu_break_context(1, CUDA_ERROR_ILLEGAL_ADDRESS);
    group.barrier();
  });
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::io);
    CHECK(outcome.text.find("CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos);
    CHECK(outcome.text.find("compute-sanitizer") != std::string::npos);
  }
}
