// Streams that wait for operations, while the host goes on.
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/graphs.hpp"
#include "conformance/gpu/in_stream.hpp"

namespace col::test {
namespace {

using nccl_backend::GpuStream;
using Array = GpuArray<std::int32_t>;
using Values = std::vector<std::int32_t>;

constexpr std::size_t kElements = 5000;

Values ramp(int from) {
  Values values(kElements);
  std::iota(values.begin(), values.end(), from);
  return values;
}
Values own_of(int rank, int round) {
  return ramp(100'000 * rank + round);
}
Values sum_of_both(int round) {
  Values values = own_of(0, round);
  const Values other = own_of(1, round);
  for (std::size_t i = 0; i < kElements; ++i) values[i] += other[i];
  return values;
}

GPU_TEST_CASE("gpu: a stream that waits for an operation sees what that gave", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuStream caller(cuda()), reader(cuda());
    const Stream waits{reader.get()};
    const Array in(gpu, kElements, 0), out(gpu, kElements, 0), seen(gpu, kElements, 0);
    for (int round = 0; round < 30; ++round) {
      in.set(own_of(gpu, round));
      Work summed = group.iallreduce(in, out, {.stream = {round % 2 == 0 ? nullptr : caller.get()}});
      summed.wait(waits);
      copy_in(reader.get(), out, seen);
      await_stream(reader.get());
      expect(seen.values() == sum_of_both(round), "the sum");
      summed.wait();       // for the host, too
      summed.wait(waits);  // there is nothing left to wait for

      Work received = group.irecv(out, 1 - gpu), sent = group.isend(in, 1 - gpu);
      received.wait(waits);
      copy_in(reader.get(), out, seen);
      await_stream(reader.get());
      expect(seen.values() == own_of(1 - gpu, round), "the message");
      sent.wait(waits);
      await_stream(reader.get());
      if (round % 3 != 0) continue;  // the next call finds that they have ended
      received.wait();
      sent.wait();
    }
  }));
}

GPU_TEST_CASE("gpu: a stream that waits for a batch of messages waits for each of them", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuStream reader(cuda());
    const Array in(gpu, own_of(gpu, 3)), out(gpu, kElements, 0), seen(gpu, kElements, 0);
    const std::size_t half = kElements / 2;
    const std::vector<Message> messages{
        Message::send(in.part(0, half), 1 - gpu), Message::recv(out.part(0, half), 1 - gpu),
        Message::send(in.part(half, half), 1 - gpu), Message::recv(out.part(half, half), 1 - gpu)};
    Work exchanged = group.ibatch(messages);
    exchanged.wait(Stream{reader.get()});
    copy_in(reader.get(), out, seen);
    await_stream(reader.get());
    expect(seen.values() == own_of(1 - gpu, 3), "the messages");
    exchanged.wait();
  }));
}

// Whatever moves the data: the host alone sees the end.
GPU_TEST_CASE("gpu: what ends on the host is not for streams to wait for, and the error says what to do", "[gpu]") {
  for (const Backend backend : {Backend::nccl, Backend::shm}) {
    INFO(to_string(backend));
    check_good(run_gpu_ranks({2, backend}, [backend](Group& group, int gpu) {
      const GpuStream stream(cuda());
      const Array data(backend == Backend::nccl ? kHost : gpu, kElements, 1), out(gpu, kElements, 0);
      const auto refuse = [&](Work work) {
        for (int i = 0; i < 2; ++i) {  // in flight, maybe, and certainly when it has ended
          expect_error(ErrorCode::unavailable, "call wait() without a stream",
                       [&] { work.wait(Stream{stream.get()}); });
          work.wait();
        }
      };
      refuse(group.iallreduce(data, data));
      expect(data.values() == Values(kElements, 2), "the sum");
      const Options tagged{.tag = 3};
      Work sent = group.isend(out, 1 - gpu, tagged);
      refuse(group.irecv(data, 1 - gpu, tagged));
      refuse(sent);
      (void)group.isend(out, gpu);
      refuse(group.irecv(data, gpu));
      Work after = group.iallreduce(out, out).then([](const std::optional<Error>&) {});
      expect_error(ErrorCode::invalid_argument, "call wait() without a stream",
                   [&] { after.wait(Stream{stream.get()}); });
      after.wait();
      group.allreduce(data);
      expect(data.values() == Values(kElements, 0), "the group goes on");
    }));
  }
}

GPU_TEST_CASE("gpu: a stream joins the capture of an operation that it waits for", "[gpu]") {
  for (const CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL}) {
    INFO(mode);
    check_good(run_gpu_ranks(2, [mode](Group& group, int gpu) {
      const GpuStream caller(cuda()), reader(cuda()), stranger(cuda());
      const Options options{.stream = {caller.get()}};
      const Array in(gpu, own_of(gpu, 0)), out(gpu, kElements, 0), seen(gpu, kElements, 0), other(gpu, kElements, 1);
      group.allreduce(in, out, options);  // what NCCL does on first use happens outside
      group.allreduce(other);
      std::optional<Work> kept;
      {
        Capture capture(caller.get(), mode);
        Work summed = group.iallreduce(in, out, options);
        expect(summed.test(), "for the host, it has ended");
        expect_error(ErrorCode::invalid_argument, "the default stream cannot be", [&] { summed.wait(Stream()); });
        summed.wait(Stream{reader.get()});
        copy_in(reader.get(), out, seen);
        join(reader.get(), caller.get());
        capture.end();
        expect_error(ErrorCode::invalid_argument, "whose capture has ended",
                     [&] { summed.wait(Stream{stranger.get()}); });
        for (const int round : {1, 2, 3}) {
          in.set(own_of(gpu, round));
          capture.replay();
          expect(seen.values() == sum_of_both(round), "what the stream read");
        }
        kept = summed;
        group.barrier();
      }
      group.barrier();
      Context::current().destroy_group("g");
      kept->wait();  // it outlives its group
    }));
  }
}

}  // namespace
}  // namespace col::test
