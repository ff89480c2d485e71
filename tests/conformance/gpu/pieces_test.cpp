// Long calls in groups whose ranks may give memory of GPUs: over the host they go in pieces, on all ranks alike.
#include <chrono>
#include <cstdint>
#include <functional>
#include <latch>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/gpu_case.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using col::Collective;
using col::ReduceOp;
using col::test::check_good;
using col::test::error_of;
using col::test::expect;
using col::test::GpuArray;
using col::test::has;
using col::test::kHost;

namespace {

using Numbers = std::vector<std::int32_t>;

// Two pieces and a half, and a few.
constexpr std::size_t kLong = (std::size_t{5} << 19) + 3;

Numbers numbers_of(int rank) {
  Numbers numbers(kLong);
  for (std::size_t i = 0; i < kLong; ++i) numbers[i] = static_cast<std::int32_t>((i * 7 + 13) % 1009) * (rank + 1);
  return numbers;
}

// What numbers_of(0) times `factor` is.
Numbers multiple(int factor) {
  return numbers_of(factor - 1);
}

int sum_to(int n) {
  return n * (n + 1) / 2;
}

void check(const GpuArray<std::int32_t>& found, const Numbers& want, const std::string& what) {
  expect(found.values() == want, what);
}

void long_calls(col::Group& group, int place, const col::Options& options) {
  const int rank = group.rank(), n = group.size();
  const Numbers own = numbers_of(rank), untouched(kLong, -5);
  const GpuArray<std::int32_t> in(place, own), out(place, untouched);
  group.allreduce(in, out, options);
  check(out, multiple(sum_to(n)), "allreduce");
  col::Options to_last = options;
  to_last.root = n - 1;
  out.set(untouched);
  group.reduce(in, out, to_last);
  check(out, rank == n - 1 ? multiple(sum_to(n)) : untouched, "reduce");
  group.scan(in, out, options);
  check(out, multiple(sum_to(rank + 1)), "scan");
  out.set(untouched);
  group.exscan(in, out, options);
  check(out, rank == 0 ? untouched : multiple(sum_to(rank)), "exscan");
  check(in, own, "the input");
  group.allreduce(in, options);
  check(in, multiple(sum_to(n)), "allreduce in place");
  in.set(own);
  group.broadcast(in, {.root = n - 1});
  check(in, multiple(n), "broadcast");
}

// Long messages, each rank to the next one, in all the ways that there are.
void long_messages(col::Group& group, int place) {
  const int rank = group.rank(), n = group.size(), next = (rank + 1) % n, last = (rank + n - 1) % n;
  const GpuArray<std::int32_t> own(place, numbers_of(rank)), theirs(place, kLong), others(place, kLong);
  const Numbers want = multiple(last + 1);
  group.sendrecv(own, next, theirs, last);
  check(theirs, want, "sendrecv");
  if (rank % 2 == 0) {
    group.send(own, next);
    group.recv(others, last);
  } else {
    group.recv(others, last);
    group.send(own, next);
  }
  check(others, want, "send and recv");
  {  // two long ones under way, a short one that overtakes them, and a collective in between
    const GpuArray<std::int32_t> first(place, kLong), second(place, kLong), word(place, Numbers(5, rank)),
        heard(place, 5), sum(place, Numbers(9, 1));
    col::Work a = group.isend(own, next, {.tag = 1}), b = group.isend(own, next, {.tag = 1});
    col::Work c = group.irecv(first, last, {.tag = 1});
    group.sendrecv(word, next, heard, last, {.tag = 2});
    check(heard, Numbers(5, last), "a short one");
    group.allreduce(sum);
    check(sum, Numbers(9, n), "a collective");
    expect(group.recv_any(second, {.tag = 1}) == last, "whose it is");
    for (col::Work* work : {&a, &b, &c}) work->wait();
    check(first, want, "the first of two");
    check(second, want, "the second, from any rank");
  }
  check(own, numbers_of(rank), "what was sent");
}

// Ranks that share a GPU, over the host.
std::vector<col::test::Outcome> run_sharing(int n, const std::function<void(col::Group&)>& body,
                                            const char* backend = "shm") {
  return col::test::run_threads(n, [&](int rank, col::Context& context) {
    const col::nccl_backend::GpuDevice device(col::test::cuda(), 0);
    const col::nccl_backend::GpuDevice::Scope scope(device);
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = n, .backend_name = backend});
    body(group);
  });
}

}  // namespace

GPU_TEST_CASE("gpu pieces: long calls are right, whatever memory ranks give", "[gpu]") {
  for (const bool shares : {true, false}) {
    const int n = shares ? 2 : 3;
    if (!shares) col::test::need_gpus(n);
    for (const char* backend : {"shm", "gloo"}) {
      INFO(backend);
      check_good(col::test::run_threads(n, [&](int rank, col::Context& context) {
        const col::nccl_backend::GpuDevice device(col::test::cuda(), shares ? 0 : rank);
        const col::nccl_backend::GpuDevice::Scope scope(device);
        col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = n, .backend_name = backend});
        long_calls(group, rank == 1 ? kHost : device.ordinal(), {});
      }));
    }
  }
  // Between GPUs, what runs over the host.
  const auto add = [](const void* left, const void* right, void* result, std::size_t count, col::DType) {
    for (std::size_t i = 0; i < count; ++i)
      static_cast<std::int32_t*>(result)[i] =
          static_cast<const std::int32_t*>(left)[i] + static_cast<const std::int32_t*>(right)[i];
  };
  check_good(col::test::run_gpu_ranks(2, [&](col::Group& group, int gpu) {
    long_calls(group, gpu, {.op = col::Op::user(add, true, "mine")});
    const GpuArray<std::int32_t> data(gpu, numbers_of(gpu));
    group.allreduce(data, {.algorithm = "ring"});
    check(data, multiple(3), "an algorithm of ours");
  }));
}

GPU_TEST_CASE("gpu pieces: all ranks cut a call alike, and explain says so", "[gpu]") {
  check_good(col::test::run_threads(2, [](int rank, col::Context& context) {
    // One rank with a GPU is enough.
    const col::nccl_backend::GpuDevice device(col::test::cuda(), 0);
    std::optional<col::nccl_backend::GpuDevice::Scope> scope;
    if (rank == 0) scope.emplace(device);
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend = col::Backend::shm});
    expect(has(group.explain(Collective::allreduce, kLong * 4, col::DType::int32), "in pieces of 1048576 elements"),
           group.explain(Collective::allreduce, kLong * 4, col::DType::int32));
    expect(!has(group.explain(Collective::allreduce, 4096, col::DType::int32), "pieces"), "a short one");
    expect(!has(group.explain(Collective::allgather, kLong * 4, col::DType::int32), "pieces"), "no elementwise one");
    const GpuArray<std::int32_t> data(rank == 0 ? 0 : kHost, numbers_of(rank));
    group.record_trace(true);
    group.allreduce(data);
    const auto seen = context.spec().control->record(rank).read();
    expect(seen.state == col::RankActivity::State::joined, "its record says that the call has ended");
    std::set<std::uint64_t> operations;
    for (const col::TraceEntry& entry : group.trace()) operations.insert(entry.operation);
    expect(operations == std::set<std::uint64_t>{1, 2, 3}, fmt::format("{} operations", operations.size()));
    check(data, multiple(3), "the sum");
  }));
}

GPU_TEST_CASE("gpu pieces: calls that differ are a mismatch, also one long and one short", "[gpu]") {
  for (const std::size_t other : {std::size_t{9}, kLong + 1}) {
    const auto outcomes = run_sharing(
        3, [&](col::Group& group) { group.allreduce(GpuArray<std::int32_t>(0, group.rank() == 1 ? other : kLong)); });
    INFO(col::test::show(outcomes));
    for (const col::test::Outcome& outcome : outcomes) {
      CHECK(outcome.code == col::ErrorCode::mismatch);
      CHECK(outcome.error_rank == 1);
      CHECK(has(outcome.text, fmt::format("allreduce of {} int32", kLong)));
      CHECK(has(outcome.text, fmt::format("allreduce of {} int32", other)));
    }
  }
}

GPU_TEST_CASE("gpu pieces: a rank that never calls is named when the time of the whole call is up", "[gpu]") {
  std::latch ended(1);
  const auto outcomes = run_sharing(2, [&](col::Group& group) {
    if (group.rank() == 1) return ended.wait();
    const GpuArray<std::int32_t> data(0, kLong);
    const std::string error = error_of([&] { group.allreduce(data, {.timeout = 500ms}); });
    ended.count_down();
    expect(has(error, "timeout") && has(error, "rank 1 did not enter it"), error);
  });
  check_good(outcomes);
  CHECK(outcomes[0].seconds < 10);
}

GPU_TEST_CASE("gpu pieces: long messages are moved while they are copied", "[gpu]") {
  for (const char* backend : {"shm", "gloo"}) {
    INFO(backend);
    for (const int n : {2, 3}) {
      check_good(run_sharing(
          n,
          [&](col::Group& group) {
            const int rank = group.rank();
            long_messages(group, rank == 2 ? kHost : 0);
            const GpuArray<std::int32_t> data(rank == 1 ? kHost : 0, numbers_of(rank));
            if (rank == 0) group.send(data, 1);
            if (rank == 1) group.recv(data, 0);
            check(data, numbers_of(rank == 1 ? 0 : rank), "from a GPU to the host");
          },
          backend));
    }
  }
  check_good(col::test::run_gpu_ranks(2, [&](col::Group& group, int gpu) {
    const GpuArray<std::int32_t> own(gpu, numbers_of(gpu)), theirs(gpu, kLong);
    group.sendrecv(own, 1 - gpu, theirs, 1 - gpu, {.tag = 3});
    check(theirs, numbers_of(1 - gpu), "between GPUs, by the host");
  }));
}

GPU_TEST_CASE("gpu pieces: a long message that nobody receives ends at its deadline", "[gpu]") {
  std::latch ended(1);
  const auto outcomes = run_sharing(2, [&](col::Group& group) {
    if (group.rank() == 1) return ended.wait();
    const GpuArray<std::int32_t> data(0, kLong);
    const std::string error = error_of([&] { group.send(data, 1, {.timeout = 500ms}); });
    ended.count_down();
    expect(has(error, "timeout") && has(error, "rank 1"), error);
  });
  check_good(outcomes);
  CHECK(outcomes[0].seconds < 10);
}
