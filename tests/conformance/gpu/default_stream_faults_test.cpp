// A stream that is ordered with the default stream is captured, so that nothing can come after the default stream
// meanwhile. To ask for that would spoil the capture: calls say so before, and what is in flight waits.
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/graphs.hpp"
#include "support/prompt.hpp"

namespace col::test {
namespace {

using Array = GpuArray<std::int32_t>;
using Values = std::vector<std::int32_t>;

constexpr std::size_t kAFew = 100;

// As cudaStreamCreate() makes one, and the capture that spreads to no other.
class BlockingCapture {
 public:
  BlockingCapture() {
    cuda().check(cuda().StreamCreateWithPriority(&stream_, CU_STREAM_DEFAULT, 0), "cannot make a stream");
    capture_ = std::make_unique<Capture>(stream_);
  }
  ~BlockingCapture() {
    capture_.reset();
    cuda().StreamDestroy(stream_);
  }
  BlockingCapture(const BlockingCapture&) = delete;
  BlockingCapture& operator=(const BlockingCapture&) = delete;
  CUstream stream() const { return stream_; }
  // Throws if something has spoiled it.
  void end() { capture_->end(); }

 private:
  CUstream stream_ = nullptr;
  std::unique_ptr<Capture> capture_;
};

template <class Call>
void expect_refused(Call call) {
  expect_error(ErrorCode::unavailable, "that is ordered with the default stream", call);
}

TEST_CASE("gpu default stream: calls that come after it are refused beside a capture, and break nothing", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const Array data(gpu, Values(kAFew, 1)), out(gpu, kAFew, 0);
    const std::vector<TensorView> tensors{out};
    const int peer = 1 - gpu;
    const nccl_backend::GpuStream own(cuda());
    group.allreduce(data, out);
    group.allreduce_multigpu(tensors);
    BlockingCapture capture;
    const Options by_name{.stream = {CU_STREAM_LEGACY}};
    for (const Options& options : {Options(), by_name}) {
      expect_refused([&] { group.allreduce(data, out, options); });
      expect_refused([&] { (void)group.iallreduce(data, out, options); });
      expect_refused([&] { group.send(data, peer, options); });
    }
    expect_refused([&] { (void)group.irecv(out, peer); });
    expect_refused([&] { group.allreduce_multigpu(tensors); });
    group.allreduce(data, out, {.stream = {own.get()}});
    capture.end();
    expect(out.values() == Values(kAFew, 2), "the sum in a stream of its own");
    group.allreduce(out);
    group.sendrecv(data, peer, out, peer);
    expect(out.values() == Values(kAFew, 1), "the message");
  }));
}

TEST_CASE("gpu default stream: messages that were posted before a capture begin after it", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const Array data(gpu, Values(kAFew, gpu)), out(gpu, kAFew, -1);
    const int peer = 1 - gpu;
    group.sendrecv(data, peer, out, peer);
    group.barrier();
    Work received = group.irecv(out, peer), sent = group.isend(data, peer);
    {
      BlockingCapture capture;
      for (int i = 0; i < 20; ++i) expect(!received.test(), "the message has begun");
      capture.end();
    }
    sent.wait();
    received.wait();
    expect(out.values() == Values(kAFew, peer), "the message");
  }));
}

// A part of it passes before a thread is told that it may be waiting for itself.
constexpr Duration kTimeout = std::chrono::seconds(12);

template <class Call>
void expect_held_up(Call call) {
  expect_error(ErrorCode::unavailable, "end the capture first", call);
}

TEST_CASE("gpu default stream: a thread that captures does not wait for messages, and nothing breaks", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const Array data(gpu, Values(kAFew, gpu)), out(gpu, kAFew, -1), sum(gpu, kAFew, 0);
    const nccl_backend::GpuStream own(cuda());
    const int peer = 1 - gpu;
    group.sendrecv(data, peer, out, peer);
    group.allreduce(data, sum);
    Work received = group.irecv(out, peer, {.timeout = kTimeout}),
         sent = group.isend(data, peer, {.timeout = kTimeout});
    BlockingCapture capture;
    expect_held_up([&] { group.allreduce(data, sum, {.stream = {capture.stream()}}); });
    expect_held_up([&] { (void)group.iallreduce(data, sum, {.stream = {capture.stream()}}); });
    expect_held_up([&] { group.allreduce(data, sum, {.timeout = kTimeout, .stream = {own.get()}}); });
    expect_held_up([&] { received.wait(); });
    expect_held_up([&] { received.wait(Stream{own.get()}); });
    capture.end();
    received.wait();
    sent.wait();
    expect(out.values() == Values(kAFew, peer), "the message");
    group.allreduce(data, sum);
    expect(sum.values() == Values(kAFew, 1), "the sum");
  }));
}

TEST_CASE("gpu default stream: a thread that captures does not wait for copies back, and nothing breaks", "[gpu]") {
  std::atomic<bool> captures{false};
  check_good(run_gpu_ranks({.backend = Backend::shm}, [&](Group& group, int gpu) {
    const Array data(gpu, Values(kAFew, 1)), out(gpu, kAFew, 0);
    group.allreduce(data, out);
    out.set(Values(kAFew, 0));
    // Comes to the call when rank 0 captures already: else the call might end before.
    if (group.rank() != 0) expect_soon("rank 0 does not capture", [&] { return captures.load(); });
    Work work = group.iallreduce(data, out, {.timeout = kTimeout});
    if (group.rank() == 0) {
      BlockingCapture capture;
      captures = true;
      expect_held_up([&] { work.wait(); });
      capture.end();
    }
    work.wait();
    expect(out.values() == Values(kAFew, 2), "the sum");
  }));
}

TEST_CASE("gpu default stream: no operation lets it wait beside a capture", "[gpu]") {
  check_good(run_gpu_ranks(1, [](Group& group, int gpu) {
    const Array data(gpu, Values(kAFew, 1)), out(gpu, kAFew, 0);
    group.allreduce(data, out);
    fake_gpu_hold_streams(1);
    Work work = group.iallreduce(data, out);
    BlockingCapture capture;
    expect_error(ErrorCode::invalid_argument, "ordered with the default stream",
                 [&] { work.wait(Stream{CU_STREAM_LEGACY}); });
    capture.end();
    fake_gpu_hold_streams(0);
    work.wait();
  }));
}

TEST_CASE("gpu default stream: no stream is put before it or after it beside a capture", "[gpu]") {
  const OnGpu current(0);
  const Array data(0, kAFew, 1);
  const nccl_backend::GpuStream own(cuda());
  const Stream other{own.get()}, by_name{CU_STREAM_LEGACY}, unnamed;
  order_streams(unnamed, other, TensorView(data).data);
  BlockingCapture capture;
  const std::size_t before = fake_gpu_calls("cuEventRecord");
  for (const Stream stream : {unnamed, by_name}) {
    expect_refused([&] { order_streams(stream, other, TensorView(data).data); });
    expect_refused([&] { order_streams(other, stream, TensorView(data).data); });
    expect_error(ErrorCode::invalid_argument, "it is being captured",
                 [&] { order_streams({capture.stream()}, stream, TensorView(data).data); });
    order_streams(stream, {capture.stream()}, TensorView(data).data);
  }
  order_streams(unnamed, by_name, TensorView(data).data);
  order_streams(by_name, unnamed, TensorView(data).data);
  CHECK(fake_gpu_calls("cuEventRecord") == before);
  capture.end();
  order_streams(by_name, other, TensorView(data).data);
  CHECK(fake_gpu_calls("cuEventRecord") == before + 1);
}

TEST_CASE("gpu default stream: what is copied through the host is refused, or copied back after the capture", "[gpu]") {
  std::atomic<bool> captures{false};
  check_good(run_gpu_ranks({.backend = Backend::shm}, [&](Group& group, int gpu) {
    const Array data(gpu, Values(kAFew, 1)), out(gpu, kAFew, 0);
    group.allreduce(data, out);
    out.set(Values(kAFew, 0));
    // Comes to the call when rank 0 captures already: else the call might end before.
    if (group.rank() != 0) expect_soon("rank 0 does not capture", [&] { return captures.load(); });
    Work work = group.iallreduce(data, out);
    if (group.rank() == 0) {
      BlockingCapture capture;
      captures = true;
      expect_refused([&] { group.allreduce(data, out); });
      const std::size_t before = fake_gpu_calls("cuStreamIsCapturing");
      for (const Deadline deadline = Deadline::after(kDeadline); fake_gpu_calls("cuStreamIsCapturing") < before + 10;) {
        expect(!work.test(), "it has ended without its copy");
        expect(!deadline.expired(), "nobody asks when the copy may begin");
      }
      capture.end();
    }
    work.wait();
    expect(out.values() == Values(kAFew, 2), "the sum");
  }));
}

}  // namespace
}  // namespace col::test
