// When a rank that waits makes way for others. Where its thread may run is made up here, for this whole program, so
// that it needs no second processor; and a rank is awaited until it has been seen to make way.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <thread>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "unit/shm/shm_ranks.hpp"

namespace {

using Clock = std::chrono::steady_clock;

thread_local std::vector<int> made_up_cpus;  // empty: the true ones
thread_local std::optional<Clock::time_point> waits_since;
thread_local std::optional<col::Duration> before_first_yield;
std::atomic<bool> has_made_way{false};

}  // namespace

extern "C" {
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t* set) noexcept {
  CPU_ZERO_S(bytes, set);
  if (!made_up_cpus.empty()) {
    for (const int cpu : made_up_cpus) CPU_SET_S(static_cast<unsigned>(cpu), bytes, set);
    return 0;
  }
  const long copied = ::syscall(SYS_sched_getaffinity, pid, bytes, set);
  return copied < 0 ? -1 : 0;
}

int sched_yield() noexcept {
  if (waits_since) {
    if (!before_first_yield) before_first_yield = Clock::now() - *waits_since;
    has_made_way = true;
  }
  return static_cast<int>(::syscall(SYS_sched_yield));
}
}

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

void meet(ShmChannel& channel, std::uint64_t number) {
  Request request;
  request.collective = Collective::barrier;
  request.fingerprint = number;
  run_native(channel, request);
}

void pass(ShmChannel& channel, int rank, std::uint64_t number) {
  std::vector<float> data(4);
  if (rank == 0)
    recv(channel, 1, number, data);
  else
    send(channel, 0, number, data);
}

// The shortest of the times after which rank 0, which waits for rank 1, makes way: over many calls, where each rank may
// run on these processors.
template <class Call>
Duration shortest_wait(const std::vector<std::vector<int>>& cpus, Call call) {
  constexpr std::uint64_t kCalls = 20;
  Duration shortest = 20s;
  const auto store = make_memory_store();
  shm_backend::LocalSegments local;
  require_well(run_each(2, [&](int rank) {
    made_up_cpus = cpus[static_cast<std::size_t>(rank)];
    const auto channel = connect({.rank = rank, .size = 2, .store = store, .local = &local});
    meet(*channel, 1);  // from here on, both know where the other one runs
    for (std::uint64_t i = 2; i < 2 + kCalls; ++i) {
      if (rank == 0) {
        before_first_yield.reset();
        waits_since = Clock::now();
        call(*channel, rank, i);
        waits_since.reset();
        expect(before_first_yield.has_value(), "it has made way");
        shortest = std::min(shortest, *before_first_yield);
        has_made_way = false;
      } else {
        const Deadline limit = Deadline::after(20s);
        while (!has_made_way && !limit.expired()) std::this_thread::sleep_for(10us);
        call(*channel, rank, i);
      }
      meet(*channel, 1000 + i);
    }
  }));
  return shortest;
}

}  // namespace

TEST_CASE("waiting: a rank that has its processors for itself keeps them for a while", "[shm]") {
  const std::vector<std::vector<int>> apart = {{0, 1}, {2}}, together = {{0, 1}, {1, 2}}, one = {{3}, {3}};
  const auto collective = [](ShmChannel& channel, int, std::uint64_t number) { meet(channel, number); };
  CHECK(shortest_wait(apart, collective) >= shm_backend::kKeepingTime);
  CHECK(shortest_wait(together, collective) < shm_backend::kKeepingTime);
  CHECK(shortest_wait(one, collective) < shm_backend::kKeepingTime);
  CHECK(shortest_wait(apart, pass) >= shm_backend::kKeepingTime);
  CHECK(shortest_wait(together, pass) < shm_backend::kKeepingTime);
}
