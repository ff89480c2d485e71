// Another thread captures in the global mode, in which every unsafe call of any thread spoils the capture. What ranks
// do beside it leaves it alone. By the stand-ins, which tell what spoiled.
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/graphs.hpp"
#include "conformance/gpu/in_stream.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using nccl_backend::GpuStream;
using Array = GpuArray<std::int32_t>;
using Values = std::vector<std::int32_t>;

constexpr std::size_t kHeld = 2000;

// A thread that has nothing to do with the ranks, and captures until end().
class ForeignCapture {
 public:
  ForeignCapture()
      : thread_([this] {
          const OnGpu current(0);
          const GpuStream stream(cuda());
          Capture capture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
          begun_.set_value();
          end_.get_future().wait();
          try {
            capture.end();
          } catch (const Error& error) {
            problem_ = error.what();
          }
        }) {
    begun_.get_future().wait();
  }
  ~ForeignCapture() { (void)end(); }
  ForeignCapture(const ForeignCapture&) = delete;
  ForeignCapture& operator=(const ForeignCapture&) = delete;

  // What has spoiled it; empty if nothing has.
  std::string end() {
    if (thread_.joinable()) {
      end_.set_value();
      thread_.join();
    }
    return problem_;
  }

 private:
  std::promise<void> begun_, end_;
  std::string problem_;
  std::thread thread_;
};

// What a rank does while the other thread captures. Each has been done before, which connects what NCCL connects.
struct Doing {
  std::string name;
  std::function<void()> run;
};

// One after another, each beside a capture of its own.
void run_beside_captures(Group& group, const std::vector<Doing>& all) {
  for (const Doing& doing : all) doing.run();
  for (const Doing& doing : all) {
    std::unique_ptr<ForeignCapture> capture;
    group.barrier();
    if (group.rank() == 0) capture = std::make_unique<ForeignCapture>();
    group.barrier();
    doing.run();
    group.barrier();
    if (capture) expect(capture->end().empty(), doing.name + " spoils a capture");
    group.barrier();
  }
}

void await_end(Work& work) {
  for (const Deadline deadline = Deadline::after(20s); !work.test();) expect(!deadline.expired(), "it does not end");
}

// GPUs that are looked at from the host's side stay started. What is made after that goes.
class LeavesNothing {
 public:
  ~LeavesNothing() {
    forget_faults();
    CHECK(alive() == before_);
  }

 private:
  static std::vector<std::size_t> alive() {
    std::vector<std::size_t> counts;
    for (const char* what : {"contexts", "streams", "events", "device_memory"}) counts.push_back(fake_gpu_alive(what));
    for (const char* what : {"communicators", "windows", "memory"}) counts.push_back(fake_nccl_alive(what));
    return counts;
  }
  const std::vector<std::size_t> before_ = alive();
};

TEST_CASE("gpu captures: whatever a rank does beside a global capture of another thread leaves that alone", "[gpu]") {
  const bool with_thread = GENERATE(false, true);
  INFO(with_thread);
  std::optional<Setting> progress;
  if (with_thread) progress.emplace("COL_PROGRESS", "thread");
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuStream stream(cuda()), reader(cuda());
    const Options in_stream{.stream = {stream.get()}};
    const Array data(gpu, kHeld, 1), out(gpu, kHeld, 0), host(kHost, kHeld, 1);
    const std::vector<TensorView> tensors{out};
    const int peer = 1 - gpu;
    run_beside_captures(group,
                        {{"a blocking call", [&] { group.allreduce(data, out); }},
                         {"a blocking call in a stream", [&] { group.allreduce(data, out, in_stream); }},
                         {"a wait", [&] { group.iallreduce(data, out).wait(); }},
                         {"a wait for a while", [&] { (void)group.iallreduce(data, out, in_stream).wait_for(20s); }},
                         {"a test",
                          [&] {
                            Work work = group.iallreduce(data, out);
                            await_end(work);
                          }},
                         {"a function that is called afterwards",
                          [&] { group.iallreduce(data, out).then([](const std::optional<Error>&) {}).wait(); }},
                         {"a stream that waits",
                          [&] {
                            Work work = group.iallreduce(data, out);
                            work.wait(Stream{reader.get()});
                            await_end(work);
                          }},
                         {"an operation that nobody waits for",
                          [&] {
                            (void)group.iallreduce(data, out);
                            group.barrier();
                          }},
                         {"calls in place that need memory", [&] { group.alltoall(out, out); }},
                         {"messages", [&] { group.sendrecv(data, peer, out, peer); }},
                         {"messages in flight",
                          [&] {
                            Work received = group.irecv(out, peer), sent = group.isend(data, peer);
                            received.wait(Stream{reader.get()});
                            await_end(received);
                            sent.wait();
                          }},
                         {"messages through the host", [&] { group.sendrecv(data, peer, out, peer, {.tag = 1}); }},
                         {"a call on host memory", [&] { group.allreduce(host); }},
                         {"calls over several GPUs", [&] { group.allreduce_multigpu(tensors); }},
                         {"memory", [&] { col::free(group.alloc(1000)); }}});
  }));
}

// In the global mode, NCCL spoils it in the other form, when a rank that has its graph makes the next call.
TEST_CASE("gpu captures: memory is got, registered, released and freed within a capture of the thread's own", "[gpu]") {
  const LeavesNothing left;
  const auto mode = GENERATE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
  if (mode == CU_STREAM_CAPTURE_MODE_GLOBAL && !is_blocking()) return;
  check_good(run_gpu_ranks(2, [mode](Group& group, int gpu) {
    const GpuStream stream(cuda());
    const Options in_stream{.stream = {stream.get()}};
    const Array data(gpu, kHeld, 1), out(gpu, kHeld, 0);
    const TensorView all = data;
    group.allreduce(data, out, in_stream);
    void* const before = group.alloc(1000);
    RegisteredMemory registered(all.data, all.bytes(), group);
    out.set(Values(kHeld, 0));
    group.barrier();
    Capture capture(stream.get(), mode);
    group.allreduce(data, out, in_stream);
    void* const memory = group.alloc(1000);
    col::free(before);
    registered.release();
    RegisteredMemory again(all.data, all.bytes(), group);
    group.allreduce(data, out, in_stream);
    col::free(memory);
    again.release();
    capture.end();
    group.barrier();
    capture.replay();
    expect(out.values() == Values(kHeld, 2), "what the graph gave");
    group.barrier();
  }));
}

TEST_CASE("gpu captures: copies through the host beside a global capture leave that alone", "[gpu]") {
  const bool with_thread = GENERATE(false, true);
  INFO(with_thread);
  std::optional<Setting> progress;
  if (with_thread) progress.emplace("COL_PROGRESS", "thread");
  check_good(run_gpu_ranks({.count = 2, .backend = Backend::shm}, [](Group& group, int gpu) {
    const GpuStream stream(cuda());
    const Array data(gpu, kHeld, 1), out(gpu, kHeld, 0);
    const int peer = 1 - gpu;
    run_beside_captures(
        group, {{"a blocking call", [&] { group.allreduce(data, out); }},
                {"a blocking call in a stream", [&] { group.allreduce(data, out, {.stream = {stream.get()}}); }},
                {"a test",
                 [&] {
                   Work work = group.iallreduce(data, out);
                   await_end(work);
                 }},
                {"messages", [&] { group.sendrecv(data, peer, out, peer); }}});
  }));
}

// The stand-in holds what was started before, until the capture is over.
TEST_CASE("gpu captures: an operation is in flight before a capture, all through it, and after it", "[gpu]") {
  const LeavesNothing left;
  const bool with_thread = GENERATE(false, true);
  INFO(with_thread);
  std::optional<Setting> progress;
  if (with_thread) progress.emplace("COL_PROGRESS", "thread");
  check_good(run_gpu_ranks(1, [](Group& group, int gpu) {
    const GpuStream stream(cuda()), reader(cuda());
    const Options captured{.stream = {stream.get()}};
    const Array data(gpu, kHeld, 1), out(gpu, kHeld, 0), seen(gpu, kHeld, 0);
    group.allreduce(data, out, captured);
    group.allreduce(data, seen);
    out.set(Values(kHeld, 0));
    seen.set(Values(kHeld, 0));
    fake_gpu_hold_streams(1);
    Work before = group.iallreduce(data, seen);
    before.wait(Stream{reader.get()});
    expect(!before.test() && !before.wait_for(1ms), "it is held");  // and the call above has not waited for it
    Capture capture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    expect(!before.test() && !before.wait_for(1ms), "it is held in the capture");
    expect_error(ErrorCode::invalid_argument, "wait for it before the capture begins",
                 [&] { before.wait(Stream{stream.get()}); });
    expect_error(ErrorCode::invalid_argument, "pass a stream that you have created",
                 [&] { before.wait(Stream{CU_STREAM_PER_THREAD}); });
    before.wait(Stream{reader.get()});
    Work inside = group.iallreduce(data, out, captured);
    expect(inside.test(), "it has ended for the host");
    expect(!before.test(), "it is held beside the other");
    capture.end();
    expect(!before.test(), "it is held after the capture");
    fake_gpu_hold_streams(0);
    before.wait();
    expect(seen.values() == Values(kHeld, 1), "what was in flight");
    expect(out.values() == Values(kHeld, 0), "the graph has not run");
    capture.replay();
    expect(out.values() == Values(kHeld, 1), "what the graph gave");
  }));
}

TEST_CASE("gpu captures: a stream waits for operations, and nothing is made anew or left behind", "[gpu]") {
  const LeavesNothing left;
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuStream reader(cuda());
    const Array data(gpu, kHeld, 1), out(gpu, kHeld, 0);
    expect_made_once(group, {"cuMemAlloc_v2", "cuEventCreate", "cuEventDestroy_v2", "cuDevicePrimaryCtxRetain"}, {},
                     [&] {
                       Work work = group.iallreduce(data, out);
                       work.wait(Stream{reader.get()});
                       await_end(work);
                     });
  }));
}

TEST_CASE("gpu captures: a stream that waits for what never ends is told by the next wait, and goes on", "[gpu]") {
  const LeavesNothing left;
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuStream reader(cuda());
    const Array data(gpu, kHeld, 1), out(gpu, kHeld, 0);
    group.allreduce(data, out);
    group.barrier();
    fake_nccl_hang(gpu, 1);
    Work hangs = group.iallreduce(data, out, {.timeout = 500ms});
    hangs.wait(Stream{reader.get()});
    expect_error(ErrorCode::timeout, "", [&] { hangs.wait(); });
    expect_error(ErrorCode::timeout, "", [&] { hangs.wait(Stream{reader.get()}); });
    await_stream(reader.get());
  }));
}

TEST_CASE("gpu captures: what the driver says of a wait is an error that leaves the group whole", "[gpu]") {
  const LeavesNothing left;
  check_good(run_gpu_ranks(1, [](Group& group, int gpu) {
    const GpuStream reader(cuda());
    const Array data(gpu, kHeld, 1), out(gpu, kHeld, 0);
    group.allreduce(data, out);
    fake_gpu_hold_streams(1);
    Work held = group.iallreduce(data, out);
    fake_gpu_fail("cuStreamWaitEvent", CUDA_ERROR_INVALID_HANDLE, 1);
    expect_error(ErrorCode::invalid_argument, "that has not been destroyed", [&] { held.wait(Stream{reader.get()}); });
    fake_gpu_fail("cuStreamWaitEvent", CUDA_ERROR_UNKNOWN, 1);
    expect_error(ErrorCode::io, "cannot let a CUDA stream wait", [&] { held.wait(Stream{reader.get()}); });
    fake_gpu_hold_streams(0);
    held.wait();
    group.allreduce(data, out);
  }));
}

}  // namespace
}  // namespace col::test
