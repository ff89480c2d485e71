// Calls over several GPUs of each rank when CUDA, NCCL or a rank fails; and that nothing is left behind, nor made
// twice.
#include <nccl.h>

#include <chrono>
#include <latch>
#include <string>
#include <vector>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/multi_gpu_calls.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

void sum(Group& group, const Gpus& gpus, const Options& options = {}) {
  const IntArrays data(gpus, 8, 1);
  group.allreduce_multigpu(data.views(), options);
}

// As run_with_faults().
template <class MultiBody>
std::vector<Outcome> run_multi_with_faults(const MultiBody& body) {
  const auto outcomes = run_multi(2, 2, body);
  forget_faults();
  check_nothing_left();
  return outcomes;
}

// Until the rank's record says that it is inside that call.
void await_call(const Context& context, int rank, const std::string& op) {
  expect_soon("the call never begins", [&] { return context.spec().control->record(rank).read().op == op; });
}

TEST_CASE("multi-gpu faults: a group that ends well leaves nothing behind", "[gpu]") {
  check_good(run_multi(2, 4, [](Group& group, const Gpus& gpus) {
    check_reductions(group, gpus, 100);
    check_messages(group, gpus, 100);
    sum(group, Gpus({gpus.ordinal(2), gpus.ordinal(0)}));
  }));
  check_nothing_left();
}

TEST_CASE("multi-gpu faults: a call that comes again connects and allocates nothing", "[gpu]") {
  fake_nccl_reset();
  fake_gpu_reset();
  check_good(run_multi(2, 2, [](Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 8, 1);
    expect_made_once(group,
                     {"cuMemAlloc_v2", "cuEventCreate", "cuStreamCreateWithPriority", "cuDevicePrimaryCtxRetain"},
                     {"ncclCommInitRankConfig"}, [&] {
                       group.allreduce_multigpu(data.views());
                       group.broadcast_multigpu(data.views(), {.root = 1}, 1);
                       if (group.rank() == 0) group.send_multigpu(data.view(1), 1, 2);
                       if (group.rank() == 1) group.recv_multigpu(data.view(0), 0, 1);
                     });
  }));
  // Two for the group, two for each of its ranks, one for each side of the messages.
  CHECK(fake_nccl_calls("ncclCommInitRankConfig") == 2 + 4 + 2);
  check_nothing_left();
}

TEST_CASE("multi-gpu faults: of connections, as many are kept as the header says", "[gpu]") {
  check_good(run_multi(2, 4, [](Group& group, const Gpus& gpus) {
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        if (i != j) sum(group, Gpus({gpus.ordinal(i), gpus.ordinal(j)}));
      }
    }
    group.barrier();
    expect(fake_nccl_alive("communicators") == 2 + 2 * 8 * 2, "lists of GPUs");
    group.barrier();
    check_messages(group, gpus, 1);
    group.barrier();
    expect(fake_nccl_alive("communicators") == 2 + 2 * 8 * 2 + 2 * 8, "pairs of GPUs");
    group.barrier();
  }));
  check_nothing_left();
}

TEST_CASE("multi-gpu faults: an error of NCCL on any GPU ends the call on every rank", "[gpu]") {
  struct Fault {
    const char* where;
    ncclResult_t code;
    ErrorCode expected;
  };
  for (const bool before : {false, true}) {
    for (const Fault& fault : {Fault{"ncclAllReduce", ncclSystemError, ErrorCode::io},
                               Fault{"ncclAllReduce", ncclRemoteError, ErrorCode::peer_lost},
                               Fault{"ncclGroupEnd", ncclInternalError, ErrorCode::internal},
                               Fault{"ncclGroupStart", ncclInternalError, ErrorCode::internal},
                               Fault{"ncclGetUniqueId", ncclSystemError, ErrorCode::io},
                               Fault{"ncclCommInitRankConfig", ncclSystemError, ErrorCode::io}}) {
      const bool connects = has(fault.where, "Init") || has(fault.where, "UniqueId");
      if (before && connects) continue;
      CAPTURE(fault.where, before);
      const auto outcomes = run_multi_with_faults([&](Group& group, const Gpus& gpus) {
        if (before) sum(group, gpus);
        group.barrier();
        if (group.rank() == 0) fake_nccl_fail(fault.where, fault.code, has(fault.where, "UniqueId") ? 1 : 2);
        group.barrier();
        sum(group, gpus);
        sum(group, gpus);
      });
      check_all(outcomes, {.code = fault.expected, .promptly = true});
    }
  }
}

TEST_CASE("multi-gpu faults: what NCCL finds in the background, on any GPU, ends a call that hangs", "[gpu]") {
  const auto outcomes = run_multi_with_faults([](Group& group, const Gpus& gpus) {
    sum(group, gpus);
    group.barrier();
    if (group.rank() == 0) {
      fake_nccl_hang(-1, 1);
      fake_nccl_async_error(3, ncclRemoteError);
    }
    // The next call of this rank may not begin before that.
    if (group.rank() == 1) await_call(Context::current(), 0, "allreduce_multi");
    sum(group, gpus);
  });
  check_all(outcomes, {.code = ErrorCode::peer_lost, .promptly = true});
}

TEST_CASE("multi-gpu faults: a GPU that is lost ends the call on every rank", "[gpu]") {
  const auto outcomes = run_multi_with_faults([](Group& group, const Gpus& gpus) {
    sum(group, gpus);
    group.barrier();
    if (group.rank() == 0) fake_nccl_lose_peer(3);
    sum(group, gpus);
    sum(group, gpus);
  });
  check_all(outcomes, {.code = ErrorCode::peer_lost, .promptly = true});
}

TEST_CASE("multi-gpu faults: an operation that never ends is given up at its deadline", "[gpu]") {
  for (const bool message : {false, true}) {
    CAPTURE(message);
    const auto outcomes = run_multi_with_faults([&](Group& group, const Gpus& gpus) {
      const IntArrays data(gpus, 8, 1);
      const auto call = [&](const Options& options) {
        if (!message) return group.allreduce_multigpu(data.views(), options);
        if (group.rank() == 0) return group.send_multigpu(data.view(1), 1, 2, options);
        group.recv_multigpu(data.view(0), 0, 1, options);
      };
      call({});
      group.barrier();
      if (group.rank() == 0) fake_nccl_hang(-1, 2);  // the barrier's launch is the next
      group.barrier();
      call({.timeout = 400ms});
      call({.timeout = 400ms});
    });
    check_all(outcomes, {.code = ErrorCode::timeout, .promptly = true});
    CHECK(fake_nccl_running() == 0);
  }
}

TEST_CASE("multi-gpu faults: a device that broke ends the call on every rank", "[gpu]") {
  const auto outcomes = run_multi(2, 2, [](Group& group, const Gpus& gpus) {
    group.barrier();
    if (group.rank() == 1) fake_gpu_break_context(3, CUDA_ERROR_ILLEGAL_ADDRESS);
    std::vector<TensorView> none;  // memory of the device could not be had any more
    for (std::size_t i = 0; i < gpus.size(); ++i)
      none.emplace_back(nullptr, 0, DType::int32, Device{Device::Type::cuda, gpus.ordinal(i)});
    group.allreduce_multigpu(none);
    group.allreduce_multigpu(none);
  });
  check_all(outcomes, {.code = ErrorCode::io, .says = "CUDA_ERROR_ILLEGAL_ADDRESS"});
}

TEST_CASE("multi-gpu faults: a group that another thread destroys ends the call, wherever it waits", "[gpu]") {
  for (const bool before : {false, true}) {
    CAPTURE(before);
    std::latch destroyed(1);
    const auto outcomes = run_multi(2, 2, [&](Group& group, const Gpus& gpus) {
      if (before) sum(group, gpus);
      if (group.rank() == 1) return destroyed.wait();
      Context& context = Context::current();
      const std::jthread other([&context] {
        await_call(context, 0, "allreduce_multi");
        context.destroy_group("g");
      });
      const std::string text = error_of([&] { sum(group, gpus, {.timeout = 15s}); }).what();
      destroyed.count_down();
      expect(has(text, "the group was destroyed"), text);
    });
    check_good_soon(outcomes);
  }
  check_nothing_left();
}

TEST_CASE("multi-gpu faults: waiting for a GPU ends at its deadline, and when the job is aborted", "[gpu]") {
  fake_gpu_reset();
  check_good(run_multi(1, 2, [](Group& group, const Gpus& gpus) {
    sum(group, gpus);
    const IntArrays data(gpus, 8, 1);
    fake_gpu_hold_streams(1);
    const Work work = group.iallreduce(data.view(0), data.view(0));
    const std::string text = error_of([] { col::synchronize(0, 200ms); }).what();
    const std::string aborted = error_of([] {
                                  Context::current().spec().control->abort({ErrorCode::aborted, 0, "the test says so"});
                                  col::synchronize(0, kDeadline);
                                }).what();
    fake_gpu_reset();
    expect(has(text, "timeout: synchronize: timed out after 200ms waiting for what GPU 0 is doing"), text);
    expect(has(aborted, "the test says so"), aborted);
  }));
  check_nothing_left();
}

TEST_CASE("multi-gpu faults: waiting for a GPU says when its work has failed", "[gpu]") {
  const OnGpu current(0);
  fake_gpu_break_context(0, CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string text = error_of([] { col::synchronize(0); }).what();
  CHECK(has(text, "io: synchronize: "));
  CHECK(has(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_CASE("multi-gpu faults: waiting for a GPU spoils no capture without saying so", "[gpu]") {
  const OnGpu current(0);
  const nccl_backend::GpuStream stream(cuda());
  REQUIRE(cuStreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  const std::string text = error_of([] { col::synchronize(0); }).what();
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream.get(), &graph) != CUDA_SUCCESS);
  CHECK(has(text, "unavailable: synchronize: a stream of GPU 0 is being captured"));
}

}  // namespace
}  // namespace col::test
