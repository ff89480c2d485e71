// Calls that a scope collects, over the stand-ins: how many launches they are, and what happens when one fails.
#include <nccl.h>

#include <barrier>
#include <cstddef>
#include <functional>
#include <latch>
#include <optional>
#include <string>
#include <vector>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/graphs.hpp"
#include "conformance/gpu/in_stream.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

using Floats = GpuArray<float>;

// How many launches a rank makes in the call. The two ranks are threads of this process.
std::size_t launches_of(std::barrier<>& both, const std::function<void()>& call) {
  both.arrive_and_wait();
  const std::size_t before = fake_nccl_launches();
  both.arrive_and_wait();
  call();
  both.arrive_and_wait();
  const std::size_t after = fake_nccl_launches();
  both.arrive_and_wait();
  return (after - before) / 2;
}

TEST_CASE("gpu coalesce: a scope is one launch", "[gpu]") {
  std::barrier<> both(2);
  check_good(run_gpu_ranks(2, [&both](Group& group, int gpu) {
    const Floats first(gpu, std::size_t{8}, 1.0f), second(gpu, std::size_t{100}, 2.0f),
        third(gpu, std::size_t{9}, 3.0f);
    const Floats in_place(gpu, std::vector<float>{1, 2, 3, 4});
    const auto start = [&] {
      (void)group.iallreduce(first, first);
      (void)group.iallreduce(second, second);
      (void)group.ibroadcast(third);
      (void)group.ialltoall(in_place, in_place);
    };
    const std::size_t alone = launches_of(both, [&] {
      start();
      group.barrier();
    });
    const std::size_t together = launches_of(both, [&] {
      Coalescing scope = group.coalesce();
      start();
      scope.end().wait();
    });
    expect(alone == 5 && together == 1, std::to_string(alone) + " and " + std::to_string(together));
    expect(second.values() == std::vector<float>(100, 8.0f), "both sums");
    expect(in_place.values() == std::vector<float>{1, 2, 3, 4}, "there and back");
  }));
  check_nothing_left();
}

TEST_CASE("gpu coalesce: a scope in a capture is a part of the graph", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda());
    const Floats first(gpu, std::size_t{8}, 1.0f), second(gpu, std::size_t{100}, 2.0f);
    group.barrier();
    Capture capture(stream.get());
    Coalescing scope = group.coalesce();
    (void)group.iallreduce(first, first, {.stream = {stream.get()}});
    (void)group.iallreduce(second, second, {.stream = {stream.get()}});
    Work all = scope.end();
    all.wait();
    capture.end();
    expect(second.values() == std::vector<float>(100, 2.0f), "nothing has run");
    capture.replay();
    capture.replay();
    expect(first.values() == std::vector<float>(8, 4.0f) && second.values() == std::vector<float>(100, 8.0f), "twice");
    group.barrier();
  }));
}

TEST_CASE("gpu coalesce: a stream waits for all calls of a scope, also in a graph", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda()), reader(cuda());
    const Floats first(gpu, std::size_t{8}, 1.0f), second(gpu, std::size_t{100}, 2.0f),
        seen(gpu, std::size_t{100}, 0.0f);
    const auto collect = [&] {
      Coalescing scope = group.coalesce();
      (void)group.iallreduce(first, first, {.stream = {stream.get()}});
      (void)group.iallreduce(second, second, {.stream = {stream.get()}});
      return scope.end();
    };
    Work all = collect();
    all.wait(Stream{reader.get()});
    copy_in(reader.get(), second, seen);
    await_stream(reader.get());
    expect(seen.values() == std::vector<float>(100, 4.0f), "the second call has ended before the copy");
    all.wait();
    group.barrier();
    Capture capture(stream.get());
    Work captured = collect();
    captured.wait(Stream{reader.get()});
    copy_in(reader.get(), second, seen);
    join(reader.get(), stream.get());
    capture.end();
    capture.replay();
    expect(seen.values() == std::vector<float>(100, 8.0f), "the copy is a part of the graph, behind the calls");
    group.barrier();
  }));
}

TEST_CASE("gpu coalesce: no stream waits for a call of a scope that is open, and no function follows it", "[gpu]") {
  check_good(run_with_faults(2, [](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda()), reader(cuda());
    const Floats first(gpu, std::size_t{8}, 1.0f);
    Coalescing scope = group.coalesce();
    Work one = group.iallreduce(first, first, {.stream = {stream.get()}});
    expect_error(ErrorCode::invalid_argument, "has not ended; end it before", [&] { one.wait({reader.get()}); });
    expect_error(ErrorCode::invalid_argument, "has not ended; end it before",
                 [&] { (void)one.then([](const std::optional<Error>&) {}); });
    Work all = scope.end();
    one.wait({reader.get()});
    all.wait();
    one.wait({reader.get()});
    expect(first.values() == std::vector<float>(8, 2.0f), "the sum");
  }));
}

TEST_CASE("gpu coalesce: a capture that begins or ends inside of a scope is refused, and none of its calls is made",
          "[gpu]") {
  check_good(run_with_faults(2, [](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda());
    const Options options{.stream = {stream.get()}};
    const Floats first(gpu, std::size_t{8}, 1.0f), second(gpu, std::size_t{100}, 2.0f);
    group.barrier();
    const auto refused = [&](Coalescing& scope, Work& one, const char* says) {
      expect_error(ErrorCode::invalid_argument, says, [&] { (void)scope.end(); });
      expect_error(ErrorCode::invalid_argument, says, [&] { one.wait(); });
    };
    {
      Coalescing scope = group.coalesce();
      Work one = group.iallreduce(first, first, options);
      Capture capture(stream.get());
      Work other = group.iallreduce(second, second, options);
      refused(scope, one, "the capture of the stream began after call 1 (allreduce)");
      capture.end();
    }
    {
      Capture capture(stream.get());
      Coalescing scope = group.coalesce();
      Work one = group.iallreduce(first, first, options);
      capture.end();
      refused(scope, one, "the capture of the stream ended after call 1 (allreduce)");
    }
    group.allreduce(first, options);
    expect(first.values() == std::vector<float>(8, 2.0f) && second.values() == std::vector<float>(100, 2.0f),
           "the group is usable, and the refused calls have done nothing");
    group.barrier();
  }));
}

TEST_CASE("gpu coalesce: calls in two streams are refused, and the scope goes on", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda());
    const Floats first(gpu, std::size_t{8}, 1.0f), second(gpu, std::size_t{8}, 1.0f);
    Coalescing scope = group.coalesce();
    (void)group.iallreduce(first, first, {.stream = {stream.get()}});
    expect_error(ErrorCode::invalid_argument, "run in one stream", [&] { (void)group.iallreduce(second, second); });
    scope.end().wait();
    expect(first.values() == std::vector<float>(8, 2.0f) && second.values() == std::vector<float>(8, 1.0f), "one call");
  }));
}

TEST_CASE("gpu coalesce: a group that goes while a scope is open makes none of its calls", "[gpu]") {
  check_good(run_with_faults(2, [](Group& group, int gpu) {
    const Floats first(gpu, std::size_t{8}, 1.0f);
    Coalescing scope = group.coalesce();
    Work one = group.iallreduce(first, first);
    group.destroy();
    expect_error(ErrorCode::aborted, "destroyed before coalesce() ended", [&] { one.wait(); });
    expect_error(ErrorCode::not_initialized, "", [&] { (void)scope.end(); });
  }));
}

TEST_CASE("gpu coalesce: when NCCL refuses one call, all of the scope fail with what NCCL has said", "[gpu]") {
  for (const char* function : {"ncclGroupStart", "ncclAllReduce", "ncclBroadcast", "ncclGroupEnd"}) {
    INFO(function);
    std::latch failed(1);  // the fault is for whichever thread comes first
    check_good(run_with_faults(2, [&](Group& group, int gpu) {
      const Floats first(gpu, std::size_t{8}, 1.0f), second(gpu, std::size_t{100}, 2.0f);
      group.barrier();
      Coalescing scope = group.coalesce();
      Work one = group.iallreduce(first, first), other = group.ibroadcast(second);
      if (gpu == 0) {
        fake_nccl_fail(function, ncclSystemError, 1);
        const Error error = error_of([&] { (void)scope.end(); });
        failed.count_down();
        expect(error.code() == ErrorCode::io && has(error.message(), "cannot start the"), error.what());
        expect_error(ErrorCode::invalid_argument, "has ended before", [&] { (void)scope.end(); });
        expect_error(ErrorCode::io, "cannot start the", [&] { one.wait(); });
        expect_error(ErrorCode::io, "cannot start the", [&] { other.wait(); });
        expect_error(ErrorCode::aborted, "the group broke before", [&] { (void)group.coalesce(); });
      } else {
        failed.wait();
        expect_error(ErrorCode::io, "cannot start the", [&] { scope.end().wait(); });
        expect_error(ErrorCode::aborted, "the group broke before", [&] { group.barrier(); });
      }
    }));
  }
}

TEST_CASE("gpu coalesce: a scope that a rank leaves by an exception is a mismatch with the others' next call",
          "[gpu]") {
  const auto outcomes = run_with_faults(2, [](Group& group, int gpu) {
    const Floats first(gpu, std::size_t{8}, 1.0f), second(gpu, std::size_t{100}, 2.0f);
    Coalescing scope = group.coalesce();
    (void)group.iallreduce(first, first);
    (void)group.ibroadcast(second);
    if (gpu == 0)
      scope.cancel();
    else
      (void)scope.end();
    group.barrier();
  });
  check_all(outcomes, {.code = ErrorCode::mismatch, .says = "coalesce of 2: iallreduce of 8 float32"});
}

}  // namespace
}  // namespace col::test
