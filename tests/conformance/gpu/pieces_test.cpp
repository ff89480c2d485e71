// Long calls in groups whose ranks may give memory of GPUs: over the host they go in pieces, on all ranks alike.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"
#include "support/collectives.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using Numbers = std::vector<std::int32_t>;

// Two pieces and a half, and a few.
constexpr std::size_t kLong = (std::size_t{5} << 19) + 3;

// Made once: that takes longer than the calls.
const Numbers& long_numbers(int rank) {
  static std::mutex mutex;
  static std::map<int, Numbers> made;
  const std::lock_guard lock(mutex);
  Numbers& numbers = made[rank];
  if (!numbers.empty()) return numbers;
  numbers.resize(kLong);
  for (std::size_t i = 0; i < kLong; ++i) numbers[i] = static_cast<std::int32_t>((i * 7 + 13) % 1009) * (rank + 1);
  return numbers;
}

// What long_numbers(0) times `factor` is.
const Numbers& multiple(int factor) {
  return long_numbers(factor - 1);
}

int sum_to(int n) {
  return n * (n + 1) / 2;
}

void check_long(const GpuArray<std::int32_t>& found, const Numbers& want, const std::string& what) {
  expect(found.values() == want, what);
}

void long_calls(Group& group, int place, const Options& options) {
  const int rank = group.rank(), n = group.size();
  static const Numbers untouched(kLong, -5);
  const Numbers& own = long_numbers(rank);
  const GpuArray<std::int32_t> in(place, own), out(place, untouched);
  group.allreduce(in, out, options);
  check_long(out, multiple(sum_to(n)), "allreduce");
  Options to_last = options;
  to_last.root = n - 1;
  out.set(untouched);
  group.reduce(in, out, to_last);
  check_long(out, rank == n - 1 ? multiple(sum_to(n)) : untouched, "reduce");
  group.scan(in, out, options);
  check_long(out, multiple(sum_to(rank + 1)), "scan");
  out.set(untouched);
  group.exscan(in, out, options);
  check_long(out, rank == 0 ? untouched : multiple(sum_to(rank)), "exscan");
  check_long(in, own, "the input");
  group.allreduce(in, options);
  check_long(in, multiple(sum_to(n)), "allreduce in place");
  in.set(own);
  group.broadcast(in, {.root = n - 1});
  check_long(in, multiple(n), "broadcast");
}

// Long messages, each rank to the next one, in all the ways that there are.
void long_messages(Group& group, int place) {
  const int rank = group.rank(), n = group.size(), next = (rank + 1) % n, last = (rank + n - 1) % n;
  const GpuArray<std::int32_t> own(place, long_numbers(rank)), theirs(place, kLong), others(place, kLong);
  const Numbers& want = multiple(last + 1);
  group.sendrecv(own, next, theirs, last);
  check_long(theirs, want, "sendrecv");
  if (rank % 2 == 0) {
    group.send(own, next);
    group.recv(others, last);
  } else {
    group.recv(others, last);
    group.send(own, next);
  }
  check_long(others, want, "send and recv");
  {  // two long ones under way, a short one that overtakes them, and a collective in between
    const GpuArray<std::int32_t> first(place, kLong), second(place, kLong), word(place, Numbers(5, rank)),
        heard(place, 5), sum(place, Numbers(9, 1));
    Work a = group.isend(own, next, {.tag = 1}), b = group.isend(own, next, {.tag = 1});
    Work c = group.irecv(first, last, {.tag = 1});
    group.sendrecv(word, next, heard, last, {.tag = 2});
    check_long(heard, Numbers(5, last), "a short one");
    group.allreduce(sum);
    check_long(sum, Numbers(9, n), "a collective");
    expect(group.recv_any(second, {.tag = 1}) == last, "whose it is");
    for (Work* work : {&a, &b, &c}) work->wait();
    check_long(first, want, "the first of two");
    check_long(second, want, "the second, from any rank");
  }
  check_long(own, long_numbers(rank), "what was sent");
}

// Ranks that share a GPU, over the host.
std::vector<Outcome> run_sharing(int n, const std::function<void(Group&)>& body, Backend backend = Backend::shm) {
  return run_gpu_ranks({n, backend, [](int) { return 0; }}, [&](Group& group, int) { body(group); });
}

GPU_TEST_CASE("gpu pieces: long calls are right, whatever memory ranks give", "[gpu][rest]") {
  for (const bool shares : {true, false}) {
    for (const Backend backend : {Backend::shm, Backend::gloo}) {
      INFO(to_string(backend));
      const auto gpu_of = [&](int rank) { return shares ? 0 : rank; };
      check_good(run_gpu_ranks({shares ? 2 : 3, backend, gpu_of},
                               [](Group& group, int gpu) { long_calls(group, group.rank() == 1 ? kHost : gpu, {}); }));
    }
  }
  // Between GPUs, what runs over the host.
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    long_calls(group, gpu, {.op = Op::user(add_as<std::int32_t>, true, "mine")});
    const GpuArray<std::int32_t> data(gpu, long_numbers(gpu));
    group.allreduce(data, {.algorithm = "ring"});
    check_long(data, multiple(3), "an algorithm of ours");
  }));
}

GPU_TEST_CASE("gpu pieces: all ranks cut a call alike, and explain says so", "[gpu]") {
  check_good(run_ranks(2, [](int rank, Context& context) {
    // One rank with a GPU is enough.
    const nccl_backend::GpuDevice device(cuda(), 0);
    std::optional<nccl_backend::GpuDevice::Scope> scope;
    if (rank == 0) scope.emplace(device);
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend = Backend::shm});
    expect(has(group.explain(Collective::allreduce, kLong * 4, DType::int32), "in pieces of 1048576 elements"),
           group.explain(Collective::allreduce, kLong * 4, DType::int32));
    expect(!has(group.explain(Collective::allreduce, 4096, DType::int32), "pieces"), "a short one");
    expect(!has(group.explain(Collective::allgather, kLong * 4, DType::int32), "pieces"), "no elementwise one");
    const GpuArray<std::int32_t> data(rank == 0 ? 0 : kHost, long_numbers(rank));
    group.record_trace(true);
    group.allreduce(data);
    const auto seen = context.spec().control->record(rank).read();
    expect(seen.state == RankActivity::State::joined, "its record says that the call has ended");
    std::set<std::uint64_t> operations;
    for (const TraceEntry& entry : group.trace()) operations.insert(entry.operation);
    expect(operations == std::set<std::uint64_t>{1, 2, 3}, fmt::format("{} operations", operations.size()));
    check_long(data, multiple(3), "the sum");
  }));
}

GPU_TEST_CASE("gpu pieces: calls that differ are a mismatch, also one long and one short", "[gpu]") {
  for (const std::size_t other : {std::size_t{9}, kLong + 1}) {
    const auto outcomes = run_sharing(
        3, [&](Group& group) { group.allreduce(GpuArray<std::int32_t>(0, group.rank() == 1 ? other : kLong)); });
    check_all(outcomes, {.code = ErrorCode::mismatch, .rank = 1, .says = fmt::format("allreduce of {} int32", kLong)});
    for (const Outcome& outcome : outcomes) CHECK(has(outcome.text, fmt::format("allreduce of {} int32", other)));
  }
}

GPU_TEST_CASE("gpu pieces: long messages are moved while they are copied", "[gpu][rest]") {
  for (const Backend backend : {Backend::shm, Backend::gloo}) {
    INFO(to_string(backend));
    for (const int n : {2, 3}) {
      check_good(run_sharing(
          n,
          [&](Group& group) {
            const int rank = group.rank();
            long_messages(group, rank == 2 ? kHost : 0);
            const GpuArray<std::int32_t> data(rank == 1 ? kHost : 0, long_numbers(rank));
            if (rank == 0) group.send(data, 1);
            if (rank == 1) group.recv(data, 0);
            check_long(data, long_numbers(rank == 1 ? 0 : rank), "from a GPU to the host");
          },
          backend));
    }
  }
  check_good(run_gpu_ranks(2, [&](Group& group, int gpu) {
    const GpuArray<std::int32_t> own(gpu, long_numbers(gpu)), theirs(gpu, kLong);
    group.sendrecv(own, 1 - gpu, theirs, 1 - gpu, {.tag = 3});
    check_long(theirs, long_numbers(1 - gpu), "between GPUs, by the host");
  }));
}

GPU_TEST_CASE("gpu pieces: a rank that does not come is named when the time of the whole call is up", "[gpu]") {
  for (const bool is_message : {false, true}) {
    Company company;
    const auto outcomes = run_sharing(2, [&](Group& group) {
      if (group.rank() == 1) return company.stay();
      const GpuArray<std::int32_t> data(0, kLong);
      const std::string error = error_of([&] {
                                  if (is_message) return group.send(data, 1, {.timeout = 500ms});
                                  group.allreduce(data, {.timeout = 500ms});
                                }).what();
      company.end();
      expect(has(error, "timeout") && has(error, "rank 1") && has(error, "after 500ms"), error);
    });
    check_good_soon(outcomes);
  }
}

}  // namespace
}  // namespace col::test
