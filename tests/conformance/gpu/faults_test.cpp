// What CUDA and NCCL report when they fail, as errors of ours; and that nothing is left behind. By the stand-ins alone,
// which fail when they are told to.
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/nccl/known_memory.hpp"
#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/graphs.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

void sum(Group& group, int gpu) {
  const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
  group.allreduce(data);
}

TEST_CASE("gpu faults: a group that ends well leaves nothing behind", "[gpu]") {
  check_good(run_gpu_ranks(4, [](Group& group, int gpu) {
    sum(group, gpu);
    group.barrier();
  }));
  check_nothing_left();
}

TEST_CASE("gpu faults: the second call of a kind allocates nothing", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    expect_made_once(group, {"cuMemAlloc_v2", "cuEventCreate"}, {}, [&] { group.allreduce(data); });
  }));
}

// What a call asks of the driver, by function; but not the looks whether it has ended: how many these are is a matter
// of time.
template <class Call>
std::map<std::string, std::size_t> driver_calls(Call call) {
  fake_gpu_reset();
  call();
  std::map<std::string, std::size_t> calls;
  std::istringstream names(fake_gpu_called());
  for (std::string name; std::getline(names, name);) calls[name] = fake_gpu_calls(name.c_str());
  calls.erase("cuEventQuery");
  calls.erase("cuStreamQuery");
  return calls;
}

TEST_CASE("gpu faults: a blocking call asks the driver little", "[gpu]") {
  check_good(run_gpu_ranks(1, [](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda());
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    for (const Options& options : {Options(), Options{.stream = {stream.get()}}}) {
      group.allreduce(data, options);
      const auto calls = driver_calls([&] { group.allreduce(data, options); });
      std::size_t sum = 0;
      for (const auto& [name, count] : calls) sum += count;
      expect(sum <= 6, fmt::format("{} calls: {}", sum, fmt::join(calls, ", ")));
    }
  }));
}

// A thread may have made another context current since the last call, or none.
TEST_CASE("gpu faults: a blocking call finds its GPU, whichever is current in its thread", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda());
    for (const bool in_stream : {false, true}) {
      const Options options{.stream = {in_stream ? stream.get() : nullptr}};
      const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
      group.allreduce(data, options);
      {
        const OnGpu other(2);
        group.allreduce(data, options);
        expect(nccl_backend::GpuDevice::current(cuda()) == 2, "the other one is current again");
      }
      std::string problem = "not run";
      std::thread([&] {  // where none is current
        problem.clear();
        try {
          group.allreduce(data, options);
        } catch (const Error& error) {
          problem = error.what();
        }
        if (nccl_backend::GpuDevice::current(cuda()) != -1) problem += "; a context is left current";
      })
          .join();
      expect(problem.empty(), problem);
      expect(data.values() == std::vector<float>(8, 8.0f), "the sum of the sums");
    }
  }));
  check_nothing_left();
}

// The driver as far as memory goes: which GPU has what lies at these addresses, in which allocation.
struct Lying {
  struct Part {
    std::uintptr_t begin, end;
    int device;
    unsigned long long number;
  };
  static inline std::vector<Part> parts;
  static inline int asked = 0;

  static CUresult CUDAAPI ask(void* answer, CUpointer_attribute attribute, CUdeviceptr place) {
    ++asked;
    for (const Part& part : parts) {
      if (place < part.begin || place >= part.end) continue;
      if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *static_cast<int*>(answer) = part.device;
      if (attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID) *static_cast<unsigned long long*>(answer) = part.number;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  }
};

TEST_CASE("gpu faults: memory is asked for once, and anew when it was freed and given out again", "[gpu]") {
  nccl_backend::CudaDriver driver;
  driver.PointerGetAttribute = &Lying::ask;
  nccl_backend::KnownMemory known;
  const auto look = [&](std::uintptr_t begin, std::size_t bytes) {
    Lying::asked = 0;
    return known.device_of(reinterpret_cast<const void*>(begin), bytes, driver);
  };
  Lying::parts = {{0x1000, 0x2000, 0, 1}};
  for (const int calls : {4, 1, 1}) {
    CHECK(look(0x1000, 0x800) == 0);
    CHECK(Lying::asked == calls);
  }
  CHECK(look(0x1800, 0x800) == 0);  // another buffer there
  CHECK(look(0x1800, 0x801) == std::nullopt);
  Lying::parts = {};  // freed
  CHECK(look(0x1000, 0x800) == std::nullopt);
  Lying::parts = {{0x1000, 0x2000, 3, 2}};  // given out again: on another GPU
  CHECK(look(0x1000, 0x800) == 3);
  CHECK(look(0x1000, 0x800) == 3);
  CHECK(Lying::asked == 1);
  Lying::parts = {{0x1000, 0x1400, 3, 4}};  // and smaller
  CHECK(look(0x1000, 0x800) == std::nullopt);
  Lying::parts = {{0x1000, 0x1400, 3, 4}, {0x1400, 0x2000, 3, 5}};  // two, mapped one beside the other
  CHECK(look(0x1000, 0x800) == 3);
  CHECK(look(0x1000, 0x800) == 3);
  Lying::parts.pop_back();  // of which the second has gone
  CHECK(look(0x1000, 0x800) == std::nullopt);
}

TEST_CASE("gpu faults: a message comes after what its stream holds", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    constexpr std::size_t kCount = std::size_t{1} << 22;
    const GpuArray<float> data(gpu, kCount, 1.0f), later(gpu, kCount, 2.0f);
    const nccl_backend::GpuStream stream(cuda());
    for (int i = 0; i < 5; ++i) {
      group.barrier();
      if (gpu == 1) {
        group.recv(data, 0);
        expect(data.values() == std::vector<float>(kCount, 2.0f), "what the stream had written by then");
        continue;
      }
      data.set(std::vector<float>(kCount, 1.0f));
      fake_gpu_hold_streams(1);
      const TensorView to = data, from = later;
      cuda().check(cuda().MemcpyAsync(reinterpret_cast<CUdeviceptr>(to.data), reinterpret_cast<CUdeviceptr>(from.data),
                                      to.bytes(), stream.get()),
                   "copy");
      Work sent = group.isend(data, 1, {.stream = {stream.get()}});
      expect(!sent.test(), "the stream holds");
      fake_gpu_hold_streams(0);
      sent.wait();
    }
  }));
  fake_gpu_reset();
}

TEST_CASE("gpu faults: the streams of a group have the highest priority when it is made so", "[gpu]") {
  check_good(run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    const auto count = [](Group& group) {
      group.barrier();
      const std::size_t streams = fake_gpu_alive("high_priority_streams");
      group.barrier();  // nobody makes more until both have counted
      return streams;
    };
    const auto make = [&](const char* name, bool high) {
      return context.init_group(
          {.name = name, .rank = rank, .world_size = 2, .backend = Backend::nccl, .is_high_priority_stream = high});
    };
    Group normal = make("normal", false);
    expect(count(normal) == 0, "none unless asked for");
    Group high = make("high", true);
    expect(count(high) == 2, "one on each GPU");
    Group child = high.dup();
    expect(count(child) == 4, "groups made from it as well");
    const GpuArray<float> data(rank, std::size_t{8}, 1.0f);
    const std::vector<TensorView> tensors{data};
    high.allreduce_multigpu(tensors);
    expect(count(high) == 6, "calls over several GPUs as well");
    expect(data.values() == std::vector<float>(8, 2.0f), "the sum");
    // The ranks need not agree, and a group over the host does not look at it.
    Group odd = make("odd", rank == 0);
    expect(count(odd) == 7, "one on the GPU of rank 0");
    Group host = context.init_group(
        {.name = "host", .rank = rank, .world_size = 2, .backend = Backend::gloo, .is_high_priority_stream = true});
    expect(count(host) == 7, "no stream for the host");
  }));
  check_nothing_left();
}

TEST_CASE("gpu faults: a world of one has a stream of the highest priority when it is made so", "[gpu]") {
  check_good(run_threads(1, [](int rank, Context& context) {
    const OnGpu current(rank);
    Group alone = context.init_group({.name = "alone", .backend = Backend::nccl, .is_high_priority_stream = true});
    expect(fake_gpu_alive("high_priority_streams") == 1, "its stream");
  }));
}

TEST_CASE("gpu faults: NCCL's profilers see the names of groups, as long as their communicators live", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    const std::vector<TensorView> tensors{data};
    group.allreduce_multigpu(tensors);
    Group child = group.dup();
    child.barrier();
    const std::string names = fake_nccl_names();
    group.barrier();
    for (const std::string& name : {std::string("g"), std::string("g, several GPUs"), std::string(child.name())})
      expect(has("\n" + names, "\n" + name + "\n"), names);
  }));
}

// What NCCL does in a thread of its own, col cannot keep away from a capture: docs/gpu.md says so. In the blocking form
// the thread is col's.
TEST_CASE(
    "gpu faults: beside a global capture, NCCL spoils it from 2.27.3 on in a group that has graphs, unless it blocks",
    "[gpu]") {
  int version = 0;
  REQUIRE(ncclGetVersion(&version) == ncclSuccess);
  check_good(run_gpu_ranks(1, [&](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda());
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f), other(gpu, std::size_t{8}, 1.0f);
    const Options captured{.stream = {stream.get()}};
    group.allreduce(data, captured);
    group.barrier();
    Capture capture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    group.allreduce(data, captured);
    group.allreduce(other);
    if (version >= 22703 && !is_blocking())
      expect_error(ErrorCode::io, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", [&] { capture.end(); });
    else
      capture.end();
    group.barrier();
  }));
  check_nothing_left();
}

// Two groups, each used by a thread of its own, on GPUs that have no room for the work of both: how many calls end
// well.
int calls_that_end_well(bool alike) {
  const Setting serial("FAKE_NCCL_SERIAL", "1");
  std::atomic<int> good = 0;
  const auto outcomes = run_gpu_ranks(2, [&](Group& group, int gpu) {
    Group other = group.dup();
    const GpuArray<float> one(gpu, std::size_t{8}, 1.0f), two(gpu, std::size_t{8}, 1.0f);
    group.allreduce(one);
    other.allreduce(two);
    std::vector<Group> groups{group, other};
    if (!alike && gpu == 1) std::swap(groups[0], groups[1]);
    std::vector<Work> works(2);
    for (std::size_t i = 0; i < 2; ++i) {
      std::thread([&] {
        const OnGpu current(gpu);
        works[i] = groups[i].iallreduce(i == 0 ? one : two, i == 0 ? one : two, {.timeout = 5s});
      }).join();
    }
    for (Work& work : works) {
      try {
        work.wait();
        ++good;
      } catch (const Error& error) {
        expect(!alike, error.what());
      }
    }
  });
  check_good_soon(outcomes);
  check_nothing_left();
  return good;
}

TEST_CASE("gpu faults: groups of one GPU that are used in one order on all ranks get along where it is full", "[gpu]") {
  CHECK(calls_that_end_well(true) == 4);
}

TEST_CASE("gpu faults: groups of one GPU that are used in different orders end with an error where it is full",
          "[gpu]") {
  CHECK(calls_that_end_well(false) < 4);
}

// At the call, or in what it begins: then NCCL leaves its handle to be aborted.
TEST_CASE("gpu faults: a rank that cannot connect is named to those that wait for it", "[gpu]") {
  const auto function = GENERATE(as<std::string>{}, "ncclCommInitRankConfig", "ncclCommInitRankFunc");
  INFO(function);
  fake_nccl_reset();
  fake_nccl_fail(function.c_str(), ncclSystemError, 1);
  const auto outcomes = run_threads(3, [](int rank, Context& context) {
    const OnGpu current(rank);
    context.init_group({.name = "g", .rank = rank, .world_size = 3, .backend = Backend::nccl});
  });
  forget_faults();
  INFO(show(outcomes));
  int lost = 0;
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.seconds < kPromptSeconds);
    CHECK(has(outcome.text, "nccl: cannot connect the ranks"));
    if (outcome.code != ErrorCode::peer_lost) continue;
    ++lost;
    CHECK(outcomes[static_cast<std::size_t>(outcome.error_rank)].code == ErrorCode::io);
  }
  CHECK(lost == 2);
  check_nothing_left();
}

TEST_CASE("gpu faults: a driver that does not tell its priorities is an io error", "[gpu]") {
  fake_gpu_reset();
  fake_gpu_fail("cuCtxGetStreamPriorityRange", CUDA_ERROR_UNKNOWN, 1);
  const auto outcomes = run_threads(1, [](int rank, Context& context) {
    const OnGpu current(rank);
    context.init_group({.name = "alone", .backend = Backend::nccl, .is_high_priority_stream = true});
  });
  forget_faults();
  check_all(outcomes, {.code = ErrorCode::io, .says = "priorities of CUDA streams"});
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
    fake_nccl_fail("ncclAllReduce", fault.code, 1);
    check_all(run_with_faults(2, sum),
              {.code = fault.expected, .says = "nccl: cannot start the allreduce", .promptly = true});
  }
}

TEST_CASE("gpu faults: what NCCL finds in the background ends a call that hangs", "[gpu]") {
  const auto outcomes = run_with_faults(2, [](Group& group, int gpu) {
    fake_nccl_hang(gpu, 1);
    if (gpu == 0) fake_nccl_async_error(0, ncclRemoteError);
    sum(group, gpu);
  });
  check_all(outcomes, {.code = ErrorCode::peer_lost});
}

// Both ranks give up an operation that hangs; how their communicators end is counted from here on.
void give_up_what_hangs(void prepare() = [] {}) {
  const auto outcomes = run_gpu_ranks(2, [&](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    fake_nccl_hang(gpu, 1);
    prepare();
    group.allreduce(data, {.timeout = 400ms});
  });
  check_all(outcomes, {.code = ErrorCode::timeout, .promptly = true});
  CHECK(fake_nccl_running() == 0);
  check_nothing_left();
}

TEST_CASE("gpu faults: what never ends is given up at its deadline: revoked where NCCL can, and aborted elsewhere",
          "[gpu]") {
  const AsNccl ends;
  fake_nccl_reset();
  give_up_what_hangs();
  CHECK(fake_nccl_calls("ncclCommRevoke") == (can_revoke() ? 2 : 0));
  CHECK(fake_nccl_calls("ncclCommAbort") == (can_revoke() ? 0 : 2));
}

TEST_CASE("gpu faults: where revoking fails, or does not end, the communicator is aborted", "[gpu]") {
  const AsNccl ends;
  fake_nccl_reset();
  SECTION("it fails") {
    for (const int nth : {1, 2}) fake_nccl_fail("ncclCommRevoke", ncclInternalError, nth);
    give_up_what_hangs();
  }
  SECTION("it hangs") {
    if (is_blocking()) return;  // an abort would free what the thread uses that is inside of the revoke
    give_up_what_hangs([] { fake_nccl_hang_revoke(-1); });
  }
  CHECK(fake_nccl_calls("ncclCommAbort") == 2);
  fake_nccl_reset();
}

TEST_CASE("gpu faults: an error among messages that start together does not spoil the next group", "[gpu]") {
  check_good(run_with_faults(2, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f), other(gpu, std::size_t{8}, 2.0f);
    if (gpu == 0) fake_nccl_fail("ncclSend", ncclSystemError, 1);
    error_of([&] { group.sendrecv(data, 1 - gpu, other, 1 - gpu); });
    Group again =
        Context::current().init_group({.name = "again", .rank = gpu, .world_size = 2, .backend = Backend::nccl});
    again.allreduce(data);
    expect(data.values() == std::vector<float>(8, 2.0f), "the sum in the next group");
  }));
}

TEST_CASE("gpu faults: a rank that comes late to a message is waited for", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, static_cast<float>(gpu));
    static std::latch waits(1);
    if (gpu == 0) {
      waits.count_down();
      group.recv(data, 1);
      expect(data.values() == std::vector<float>(8, 1.0f), "what was sent");
    } else {
      waits.wait();
      std::this_thread::sleep_for(500ms);  // the subject of the test: longer than a call takes to be called slow
      group.send(data, 0);
    }
  }));
}

TEST_CASE("gpu faults: want of memory is a resource error", "[gpu]") {
  const auto outcomes = run_with_faults(2, [](Group& group, int gpu) {
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    group.barrier();
    if (gpu == 1) fake_gpu_fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY, 1);
    group.alltoall(data, data);  // in place it needs a copy
  });
  check_all(outcomes, {.code = ErrorCode::resource});
}

TEST_CASE("gpu faults: memory that grows takes what is needed when there is no room for more", "[gpu]") {
  check_good(run_with_faults(2, [](Group& group, int gpu) {
    const GpuArray<float> few(gpu, std::size_t{8}, static_cast<float>(gpu)),
        more(gpu, std::size_t{12}, static_cast<float>(gpu));
    group.alltoall(few, few);
    if (gpu == 1) fake_gpu_fail("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY, 1);
    group.alltoall(more, more);
    std::vector<float> want(12, 0.0f);
    std::fill(want.begin() + 6, want.end(), 1.0f);
    expect(more.values() == want, "what was exchanged");
  }));
}

TEST_CASE("gpu faults: a device that broke is an io error that says where to look", "[gpu]") {
  const auto outcomes = run_gpu_ranks(2, [](Group& group, int gpu) {
    group.barrier();
    if (gpu == 1) fake_gpu_break_context(1, CUDA_ERROR_ILLEGAL_ADDRESS);
    group.barrier();
  });
  check_all(outcomes, {.code = ErrorCode::io, .says = "CUDA_ERROR_ILLEGAL_ADDRESS"});
  for (const Outcome& outcome : outcomes) CHECK(has(outcome.text, "compute-sanitizer"));
}

}  // namespace
}  // namespace col::test
