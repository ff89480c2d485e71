// Asynchronous calls on GPUs, streams of the caller's, and graphs.
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/gpu_case.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/graphs.hpp"
#include "support/catch.hpp"

namespace {

using namespace std::chrono_literals;
using col::ErrorCode;
using col::Group;
using col::Work;
using col::nccl_backend::GpuStream;
using col::test::all_good;
using col::test::Capture;
using col::test::check_good;
using col::test::Company;
using col::test::cuda;
using col::test::error_of;
using col::test::expect;
using col::test::has;
using col::test::Outcome;
using col::test::run_gpu_ranks;
using Array = col::test::GpuArray<std::int32_t>;
using Values = std::vector<std::int32_t>;

// Of rank `rank` for rank `peer`; sums over ranks of them fit easily.
Values block(int rank, int peer, std::size_t count, int salt) {
  Values values(count);
  std::iota(values.begin(), values.end(), 1000 * rank + 100 * peer + salt);
  return values;
}

// What the ranks have for `peer`, one after another; and what `rank` has for them.
template <class BlockOf>
Values joined(int ranks, BlockOf block_of) {
  Values all;
  for (int r = 0; r < ranks; ++r) {
    const Values part = block_of(r);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}
Values of_all(int ranks, int peer, std::size_t count, int salt) {
  return joined(ranks, [&](int r) { return block(r, peer, count, salt); });
}
Values for_all(int rank, int ranks, std::size_t count, int salt) {
  return joined(ranks, [&](int r) { return block(rank, r, count, salt); });
}

Values sum(int ranks, int peer, std::size_t count, int salt) {
  Values total(count, 0);
  for (int r = 0; r < ranks; ++r) {
    const Values part = block(r, peer, count, salt);
    for (std::size_t i = 0; i < count; ++i) total[i] += part[i];
  }
  return total;
}

// A call in flight, and what it must give.
struct Flight {
  std::string what;
  Array in, out;
  Values want;
  Work work;
};

// One of every kind.
std::vector<Flight> start_all(Group& group, int gpu, std::size_t count, int salt, const col::Options& options) {
  const int n = group.size();
  const auto blocks = static_cast<std::size_t>(n);
  const std::vector<std::size_t> counts(blocks, count);
  const Values own = block(gpu, 0, count, salt), all = of_all(n, 0, count, salt);
  const bool is_root = gpu == options.root;
  const Values nothing(count * blocks, -1);
  std::vector<Flight> flights;
  const auto start = [&](std::string what, const Values& in, std::size_t out, Values want, auto call) {
    flights.push_back({std::move(what), Array(gpu, in), Array(gpu, Values(out, -1)), std::move(want), {}});
    flights.back().work = call(flights.back());
  };
  start("allreduce", own, count, sum(n, 0, count, salt),
        [&](Flight& f) { return group.iallreduce(f.in, f.out, options); });
  start("reduce", own, count, is_root ? sum(n, 0, count, salt) : Values(count, -1),
        [&](Flight& f) { return group.ireduce(f.in, f.out, options); });
  start("reduce_scatter", for_all(gpu, n, count, salt), count, sum(n, gpu, count, salt),
        [&](Flight& f) { return group.ireduce_scatter(f.in, f.out, options); });
  start("broadcast", {}, count, block(options.root, 0, count, salt), [&](Flight& f) {
    if (is_root) f.out = Array(gpu, own);
    return group.ibroadcast(f.out, options);
  });
  start("allgather", own, count * blocks, all, [&](Flight& f) { return group.iallgather(f.in, f.out, options); });
  start("allgatherv", own, count * blocks, all,
        [&](Flight& f) { return group.iallgatherv(f.in, f.out, counts, options); });
  start("gather", own, count * blocks, is_root ? all : nothing,
        [&](Flight& f) { return group.igather(f.in, f.out, options); });
  start("gatherv", own, count * blocks, is_root ? all : nothing,
        [&](Flight& f) { return group.igatherv(f.in, f.out, counts, options); });
  start("scatter", for_all(gpu, n, count, salt), count, block(options.root, gpu, count, salt),
        [&](Flight& f) { return group.iscatter(f.in, f.out, options); });
  start("scatterv", for_all(gpu, n, count, salt), count, block(options.root, gpu, count, salt),
        [&](Flight& f) { return group.iscatterv(f.in, counts, f.out, options); });
  start("alltoall", for_all(gpu, n, count, salt), count * blocks, of_all(n, gpu, count, salt),
        [&](Flight& f) { return group.ialltoall(f.in, f.out, options); });
  start("alltoallv", for_all(gpu, n, count, salt), count * blocks, of_all(n, gpu, count, salt),
        [&](Flight& f) { return group.ialltoallv(f.in, counts, f.out, counts, options); });
  start("alltoall in place", {}, 0, of_all(n, gpu, count, salt), [&](Flight& f) {
    f.out = Array(gpu, for_all(gpu, n, count, salt));
    return group.ialltoall(f.out, f.out, options);
  });
  start("barrier", {}, 0, {}, [&](Flight&) { return group.ibarrier(options); });
  return flights;
}

void expect_arrived(const std::vector<Flight>& flights) {
  for (const Flight& flight : flights) expect(flight.out.values() == flight.want, flight.what);
}

}  // namespace

GPU_TEST_CASE("gpu: asynchronous calls of every kind are in flight together, and all arrive", "[gpu]") {
  for (const int ranks : {1, 2, 4}) {
    check_good(run_gpu_ranks(ranks, [](Group& group, int gpu) {
      for (const int salt : {1, 2}) {
        std::vector<Flight> flights = start_all(group, gpu, 333, salt, {.root = group.size() - 1});
        // Waited for in different orders, by ranks and rounds.
        if ((gpu + salt) % 2 == 0) {
          for (auto flight = flights.rbegin(); flight != flights.rend(); ++flight) flight->work.wait();
        } else {
          for (Flight& flight : flights)
            for (const col::Deadline deadline = col::Deadline::after(20s); !flight.work.test();)
              expect(!deadline.expired(), flight.what + " does not end");
        }
        expect_arrived(flights);
      }
    }));
  }
}

GPU_TEST_CASE("gpu: calls that block, and messages, come between those in flight", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    std::vector<Flight> flights = start_all(group, gpu, 50, 7, {});
    const Array own(gpu, block(gpu, 0, 50, 7)), total(gpu, Values(50, -1)), theirs(gpu, Values(50, -1));
    group.allreduce(own, total);
    expect(total.values() == sum(2, 0, 50, 7), "the call that blocks");
    group.sendrecv(own, 1 - gpu, theirs, 1 - gpu);
    expect(theirs.values() == block(1 - gpu, 0, 50, 7), "the messages");
    for (Flight& flight : flights) flight.work.wait();
    expect_arrived(flights);
  }));
}

GPU_TEST_CASE("gpu: calls in two streams of the caller's share what the library keeps for itself", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuStream first(cuda()), second(cuda());
    for (int round = 0; round < 5; ++round) {
      std::vector<Flight> one = start_all(group, gpu, 400, 1, {.stream = {first.get()}});
      std::vector<Flight> other = start_all(group, gpu, 300, 2, {.stream = {second.get()}});
      for (Flight& flight : other) flight.work.wait();
      for (Flight& flight : one) flight.work.wait();
      expect_arrived(one);
      expect_arrived(other);
    }
  }));
}

GPU_TEST_CASE("gpu: a call that nobody waits for ends before its group does", "[gpu]") {
  col::test::need_gpus(2);
  check_good(col::test::run_threads(2, [](int gpu, col::Context& context) {
    const col::nccl_backend::GpuDevice device(cuda(), gpu);
    const col::nccl_backend::GpuDevice::Scope scope(device);
    Group group = context.init_group({.name = "g", .rank = gpu, .world_size = 2, .backend = col::Backend::nccl});
    const Array own(gpu, block(gpu, 0, 9, 3)), total(gpu, Values(9, -1));
    (void)group.iallreduce(own, total);
    context.destroy_group("g");
    expect(total.values() == sum(2, 0, 9, 3), "the sum");
  }));
}

GPU_TEST_CASE("gpu: an asynchronous call that a rank never makes ends with a timeout that names it", "[gpu]") {
  Company company;
  const auto outcomes = run_gpu_ranks(2, [&](Group& group, int gpu) {
    const Array data(gpu, Values(8, 1)), out(gpu, Values(8, 1));
    group.barrier();  // connects, so that the call below starts at once
    if (gpu == 1) return company.stay();
    const std::string error = error_of([&] { group.iallreduce(data, out, {.timeout = 500ms}).wait(); });
    company.end();
    expect(has(error, "timeout") && has(error, "rank 1 did not enter it"), error);
  });
  INFO(col::test::show(outcomes));
  CHECK(all_good(outcomes));
  CHECK(outcomes[0].seconds < 15);
}

GPU_TEST_CASE("gpu: an asynchronous call on some ranks and another call on one is a mismatch that names it", "[gpu]") {
  const auto outcomes = run_gpu_ranks(3, [](Group& group, int gpu) {
    const Array data(gpu, Values(8, 1)), out(gpu, Values(8, 1));
    col::Options options;
    options.timeout = 20s;
    if (gpu == 1)
      group.allgather(data.part(0, 2), out.part(0, 6), options);
    else
      group.iallreduce(data, out, options).wait();
  });
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::mismatch);
    CHECK(outcome.error_rank == 1);
    CHECK(outcome.seconds < 15);
  }
}

GPU_TEST_CASE("gpu: ranks that capture different calls are told, before any graph runs", "[gpu]") {
  const auto outcomes = run_gpu_ranks(3, [](Group& group, int gpu) {
    const GpuStream stream(cuda());
    const Array data(gpu, block(gpu, 0, 64, 1));
    group.allreduce(data);
    const Capture capture(stream.get());
    const col::Options options{.root = 0, .stream = {stream.get()}};
    if (gpu == 2)
      group.broadcast(data, options);
    else
      group.allreduce(data, options);
  });
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::mismatch);
    CHECK(outcome.error_rank == 2);
    CHECK(outcome.seconds < 15);
  }
}

GPU_TEST_CASE("gpu: a graph repeats the calls that were captured", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuStream stream(cuda());
    const col::Options options{.stream = {stream.get()}};
    const Array in(gpu, block(gpu, 0, 64, 1)), total(gpu, Values(64, -1)), all(gpu, Values(128, -1));
    group.allreduce(in, total, options);  // what NCCL does on first use happens outside
    group.allgather(in, all, options);

    Capture capture(stream.get());
    group.allreduce(in, total, options);
    Work gathered = group.iallgather(in, all, options);
    gathered.wait();  // there is nothing to wait for
    expect(has(error_of([&] { group.send(in, 1 - gpu, options); }), "cannot be part of a graph"), "a message");
    try {
      group.alltoall(all, all, options);
      expect(false, "alltoall in place was captured");
    } catch (const col::Error& error) {
      expect(error.code() == ErrorCode::unavailable, error.what());
    }
    capture.end();
    for (const int salt : {5, 6, 7}) {
      in.set(block(gpu, 0, 64, salt));
      capture.replay();
      expect(total.values() == sum(2, 0, 64, salt), "the sum of a replay");
      expect(all.values() == of_all(2, 0, 64, salt), "what a replay gathered");
    }
    group.barrier();
  }));
}
