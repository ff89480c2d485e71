// Asynchronous calls on GPUs, streams of the caller's, and graphs.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/graphs.hpp"
#include "support/collectives.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using nccl_backend::GpuStream;
using Array = GpuArray<std::int32_t>;
using Values = std::vector<std::int32_t>;

int value_of(int rank, std::size_t i, int salt) {
  return 100'000 * rank + static_cast<int>(i) + salt;
}
Values block(int rank, std::size_t count, int salt) {
  Values values(count);
  std::iota(values.begin(), values.end(), value_of(rank, 0, salt));
  return values;
}
Values sum(int ranks, std::size_t count, int salt) {
  return tools::right_output<std::int32_t>({.collective = Collective::allreduce, .size = ranks, .count = count}, 0,
                                           [salt](int rank, std::size_t i) { return value_of(rank, i, salt); });
}

// A call in flight, and what it must give.
struct GpuFlight {
  std::string what;
  Array in, out;
  Values want;
  Work work;
};

// One of every kind that NCCL has.
std::vector<GpuFlight> start_all(Group& group, int gpu, std::size_t count, int salt, const Options& options) {
  std::vector<GpuFlight> flights;
  const auto sides_of_call = [&](const tools::ReferenceCall& call) {
    return sides_of(call, gpu, -1, [&](int rank, std::size_t i) { return value_of(rank, i, salt); });
  };
  for (const Collective collective : all_collectives()) {
    if (row_of(collective).reduces() && row_of(collective).folds != Folds::all) continue;
    if (collective == Collective::reduce_scatterv) continue;
    const auto call = reference_call(collective, group.size(), options.root, count);
    const auto sides = sides_of_call(call);
    flights.push_back(
        {std::string(to_string(collective)), Array(gpu, sides.in), Array(gpu, sides.before), sides.want, {}});
    GpuFlight& flight = flights.back();
    flight.work = call_by_name(
        group, {collective, flight.in, flight.out, sides.lengths.in_counts, sides.lengths.out_counts}, options, true);
  }
  const auto sides = sides_of_call({.collective = Collective::alltoall, .size = group.size(), .count = count});
  flights.push_back({"alltoall in place", Array(gpu, Values()), Array(gpu, sides.in), sides.want, {}});
  flights.back().work = group.ialltoall(flights.back().out, flights.back().out, options);
  return flights;
}

void expect_arrived(const std::vector<GpuFlight>& flights) {
  for (const GpuFlight& flight : flights) expect(flight.out.values() == flight.want, flight.what);
}

GPU_TEST_CASE("gpu: asynchronous calls of every kind are in flight together, and all arrive", "[gpu]") {
  for (const int ranks : {1, 2, 4}) {
    check_good(run_gpu_ranks(ranks, [](Group& group, int gpu) {
      for (const int salt : {1, 2}) {
        std::vector<GpuFlight> flights = start_all(group, gpu, 333, salt, {.root = group.size() - 1});
        // Waited for in different orders, by ranks and rounds.
        if ((gpu + salt) % 2 == 0) {
          for (auto flight = flights.rbegin(); flight != flights.rend(); ++flight) flight->work.wait();
        } else {
          for (GpuFlight& flight : flights)
            for (const Deadline deadline = Deadline::after(20s); !flight.work.test();)
              expect(!deadline.expired(), flight.what + " does not end");
        }
        expect_arrived(flights);
      }
    }));
  }
}

GPU_TEST_CASE("gpu: calls that block, and messages, come between those in flight", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    std::vector<GpuFlight> flights = start_all(group, gpu, 50, 7, {});
    const Array own(gpu, block(gpu, 50, 7)), total(gpu, Values(50, -1)), theirs(gpu, Values(50, -1));
    group.allreduce(own, total);
    expect(total.values() == sum(2, 50, 7), "the call that blocks");
    group.sendrecv(own, 1 - gpu, theirs, 1 - gpu);
    expect(theirs.values() == block(1 - gpu, 50, 7), "the messages");
    for (GpuFlight& flight : flights) flight.work.wait();
    expect_arrived(flights);
  }));
}

GPU_TEST_CASE("gpu: calls in two streams of the caller's share what the library keeps for itself", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuStream first(cuda()), second(cuda());
    for (int round = 0; round < 5; ++round) {
      std::vector<GpuFlight> one = start_all(group, gpu, 400, 1, {.stream = {first.get()}});
      std::vector<GpuFlight> other = start_all(group, gpu, 300, 2, {.stream = {second.get()}});
      for (GpuFlight& flight : other) flight.work.wait();
      for (GpuFlight& flight : one) flight.work.wait();
      expect_arrived(one);
      expect_arrived(other);
    }
  }));
}

GPU_TEST_CASE("gpu: calls of every kind that a scope collects arrive, with a stream of the caller's or without",
              "[gpu]") {
  for (const int ranks : {1, 2, 4}) {
    check_good(run_gpu_ranks(ranks, [](Group& group, int gpu) {
      const GpuStream stream(cuda());
      for (const Options& options : {Options(), Options{.stream = {stream.get()}}}) {
        for (const int salt : {1, 2}) {
          Coalescing scope = group.coalesce();
          std::vector<GpuFlight> flights = start_all(group, gpu, 333, salt, options);
          Work all = scope.end();
          if (salt == 1) all.wait();
          for (GpuFlight& flight : flights) flight.work.wait();
          expect_arrived(flights);
          all.wait();
        }
      }
    }));
  }
}

// The copies go through the host's memory, and the last call over the host.
GPU_TEST_CASE("gpu: a scope collects calls on buffers of either kind, and those that go over the host", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const Array own(gpu, block(gpu, 90, 5)), total(gpu, Values(90, -1));
    const Array host(kHost, block(gpu, 80, 6)), host_total(kHost, Values(80, -1));
    const Array scanned(gpu, block(gpu, 70, 7));
    const Op least = Op::user(
        [](const void* left, const void* right, void* result, std::size_t count, DType /*dtype*/) {
          const auto* const a = static_cast<const std::int32_t*>(left);
          const auto* const b = static_cast<const std::int32_t*>(right);
          for (std::size_t i = 0; i < count; ++i) static_cast<std::int32_t*>(result)[i] = std::min(a[i], b[i]);
        },
        true, "least");
    Coalescing scope = group.coalesce();
    (void)group.iallreduce(own, total);
    (void)group.iallreduce(host, host_total);
    (void)group.iallreduce(scanned, scanned, {.op = least});
    scope.end().wait();
    expect(total.values() == sum(2, 90, 5), "on the GPU");
    expect(host_total.values() == sum(2, 80, 6), "copied there");
    expect(scanned.values() == block(0, 70, 7), "over the host");
  }));
}

GPU_TEST_CASE("gpu: a call that nobody waits for ends before its group does", "[gpu]") {
  need_gpus(2);
  check_good(run_ranks(2, [](int gpu, Context& context) {
    const OnGpu current(gpu);
    Group group = context.init_group({.name = "g", .rank = gpu, .world_size = 2, .backend = Backend::nccl});
    const Array own(gpu, block(gpu, 9, 3)), total(gpu, Values(9, -1));
    (void)group.iallreduce(own, total);
    context.destroy_group("g");
    expect(total.values() == sum(2, 9, 3), "the sum");
  }));
}

GPU_TEST_CASE("gpu: an asynchronous call that a rank never makes ends with a timeout that names it", "[gpu]") {
  Company company;
  const auto outcomes = run_gpu_ranks(2, [&](Group& group, int gpu) {
    const Array data(gpu, Values(8, 1)), out(gpu, Values(8, 1));
    group.barrier();  // connects, so that the call below starts at once
    if (gpu == 1) return company.stay();
    company.call_in_vain([&] { group.iallreduce(data, out, {.timeout = 500ms}).wait(); });
  });
  check_good_soon(outcomes);
}

GPU_TEST_CASE("gpu: an asynchronous call on some ranks and another call on one is a mismatch that names it", "[gpu]") {
  const auto outcomes = run_gpu_ranks(3, [](Group& group, int gpu) {
    const Array data(gpu, Values(8, 1)), out(gpu, Values(8, 1));
    Options options;
    options.timeout = 20s;
    if (gpu == 1)
      group.allgather(data.part(0, 2), out.part(0, 6), options);
    else
      group.iallreduce(data, out, options).wait();
  });
  check_all(outcomes, {.code = ErrorCode::mismatch, .rank = 1, .promptly = true});
}

GPU_TEST_CASE("gpu: ranks that capture different calls are told, before any graph runs", "[gpu]") {
  const auto outcomes = run_gpu_ranks(3, [](Group& group, int gpu) {
    const GpuStream stream(cuda());
    const Array data(gpu, block(gpu, 64, 1));
    group.allreduce(data);
    const Capture capture(stream.get());
    const Options options{.root = 0, .stream = {stream.get()}};
    if (gpu == 2)
      group.broadcast(data, options);
    else
      group.allreduce(data, options);
  });
  check_all(outcomes, {.code = ErrorCode::mismatch, .rank = 2, .promptly = true});
}

GPU_TEST_CASE("gpu: a graph repeats the calls that were captured", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuStream stream(cuda());
    const Options options{.stream = {stream.get()}};
    const Array in(gpu, block(gpu, 64, 1)), total(gpu, Values(64, -1)), all(gpu, Values(128, -1));
    group.allreduce(in, total, options);  // what NCCL does on first use happens outside
    group.allgather(in, all, options);

    const auto both = [](int salt) {
      Values values = block(0, 64, salt);
      const Values other = block(1, 64, salt);
      values.insert(values.end(), other.begin(), other.end());
      return values;
    };
    Capture capture(stream.get());
    group.allreduce(in, total, options);
    Work gathered = group.iallgather(in, all, options);
    gathered.wait();  // there is nothing to wait for
    expect_error("cannot be part of a graph", [&] { group.send(in, 1 - gpu, options); });
    expect_error(ErrorCode::unavailable, "", [&] { group.alltoall(all, all, options); });
    capture.end();
    for (const int salt : {5, 6, 7}) {
      in.set(block(gpu, 64, salt));
      capture.replay();
      expect(total.values() == sum(2, 64, salt), "the sum of a replay");
      expect(all.values() == both(salt), "what a replay gathered");
    }
    group.barrier();
  }));
}

// In its global mode, a capture is spoiled by a look at an event in any thread. NCCL has such looks of its own, in
// calls that are not captured, in a group that has graphs: those are made in the mode that other threads do not
// disturb.
GPU_TEST_CASE("gpu: calls in flight and the progress thread leave a capture alone", "[gpu]") {
  for (const auto& [with_thread, mode] : std::vector<std::pair<bool, CUstreamCaptureMode>>{
           {false, CU_STREAM_CAPTURE_MODE_GLOBAL},
           {true, CU_STREAM_CAPTURE_MODE_GLOBAL},
           {false, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
           {true, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
       }) {
    INFO(with_thread << mode);
    std::optional<Setting> progress;
    if (with_thread) progress.emplace("COL_PROGRESS", "thread");
    const bool is_global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    check_good(run_gpu_ranks(2, [mode = mode, is_global](Group& group, int gpu) {
      const GpuStream stream(cuda());
      const Options captured{.stream = {stream.get()}};
      const Array in(gpu, block(gpu, 64, 1)), total(gpu, Values(64, -1)), other(gpu, Values(64, -1));
      group.allreduce(in, total, captured);
      Work before = group.iallreduce(in, other);
      Capture capture(stream.get(), mode);
      group.allreduce(in, total, captured);
      for (const Deadline deadline = Deadline::after(20s); !before.test();)
        expect(!deadline.expired(), "what was in flight does not end");
      if (!is_global) group.iallreduce(in, other).wait();
      const Array fresh(gpu, 10, 3);  // memory is allocated
      capture.end();
      capture.replay();
      expect(total.values() == sum(2, 64, 1), "the sum of a replay");
      expect(other.values() == sum(2, 64, 1), "the sum beside it");
      group.barrier();
    }));
  }
}

GPU_TEST_CASE("gpu: the stream that each thread has of its own is refused, and the group goes on", "[gpu]") {
  for (const Backend backend : {Backend::nccl, Backend::shm}) {
    INFO(to_string(backend));
    check_good(run_gpu_ranks({2, backend}, [](Group& group, int gpu) {
      const Options options{.stream = {CU_STREAM_PER_THREAD}};
      const Array in(gpu, block(gpu, 64, 1)), total(gpu, Values(64, -1));
      for (const auto& call : std::vector<std::function<void()>>{
               [&] { group.allreduce(in, total, options); },
               [&] { (void)group.iallreduce(in, total, options); },
               [&] { (void)group.iallgather(in.part(0, 32), total, options); },
               [&] { group.send(in, 1 - gpu, options); },
               [&] { (void)group.irecv(total, 1 - gpu, options); },
           })
        expect_error(ErrorCode::invalid_argument, "pass a stream that you have created", call);
      group.allreduce(in, total);
      expect(total.values() == sum(2, 64, 1), "the sum");
    }));
  }
}

}  // namespace
}  // namespace col::test
