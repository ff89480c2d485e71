// When a rank that waits makes way for others. Where its thread may run is made up here, for this whole program, so
// that it needs no second processor; and a rank is awaited until it has been seen to make way.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <thread>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/native/yielding.hpp"
#include "support/catch.hpp"
#include "support/same_process.hpp"
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
  // As where nobody else computes: after a yield that has taken long, a rank sleeps for a while instead.
  if (!made_up_cpus.empty()) return 0;
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
        // Where the kernel took the processor away in a yield, it has slept instead.
        shortest = std::min(shortest, before_first_yield.value_or(20s));
        has_made_way = false;
      } else {
        const Deadline limit = Deadline::after(300ms);
        while (!has_made_way && !limit.expired()) std::this_thread::sleep_for(10us);
        call(*channel, rank, i);
      }
      meet(*channel, 1000 + i);
    }
  }));
  CHECK(shortest < 20s);  // it has made way
  return shortest;
}

// A machine on which a yield takes a while.
class SlowYields final : public SameProcess {
 public:
  explicit SlowYields(Duration takes) : takes_(takes) { core::installed_scheduler = this; }
  ~SlowYields() override { core::installed_scheduler = nullptr; }
  SlowYields(const SlowYields&) = delete;
  SlowYields& operator=(const SlowYields&) = delete;

  Time now() noexcept override { return now_; }
  std::chrono::system_clock::time_point wall_now() noexcept override { return {}; }
  void yield() noexcept override {
    ++yields;
    pass(takes_);
  }
  void block(const void* /*address*/, Time until) noexcept override { now_ = std::max(now_, until); }
  void wake(const void* /*address*/, bool /*all*/) noexcept override {}
  int poll(std::span<pollfd> /*descriptors*/, Time until) noexcept override {
    now_ = std::max(now_, until);
    return 0;
  }
  int start_thread(std::function<void()> /*body*/) override { return -1; }
  void join_thread(int /*number*/) noexcept override {}

  void pass(Duration time) { now_ += time; }
  int yields = 0;

 private:
  const Duration takes_;
  Time now_ = Time(1h);
};

}  // namespace

TEST_CASE("yielding: it pays as long as nobody else computes, and is tried again", "[shm]") {
  {
    SlowYields idle(1us);
    shm_backend::Yielding yielding;
    yielding.set_crowded(false);
    for (int i = 0; i < 1000; ++i) REQUIRE(yielding.yield());
    CHECK(idle.yields == 1000);
  }
  SlowYields busy(3ms);
  shm_backend::Yielding yielding;
  yielding.set_crowded(false);
  CHECK_FALSE(yielding.yield());
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(yielding.yield());  // it sleeps instead
  CHECK(busy.yields == 1);
  busy.pass(shm_backend::Yielding::kWhile);
  CHECK_FALSE(yielding.yield());
  CHECK(busy.yields == 2);
  // The awaited rank may need this one's processor.
  yielding.set_crowded(true);
  for (int i = 0; i < 10; ++i) CHECK(yielding.yield());
  CHECK(busy.yields == 12);
}

TEST_CASE("waiting: a rank that has its processors for itself keeps them for a while", "[shm]") {
  const std::vector<std::vector<int>> apart = {{0, 1}, {2}}, together = {{0, 1}, {1, 2}}, one = {{3}, {3}};
  const auto collective = [](ShmChannel& channel, int, std::uint64_t number) { meet(channel, number); };
  CHECK(shortest_wait(apart, collective) >= shm_backend::kKeepingTime);
  CHECK(shortest_wait(together, collective) < shm_backend::kKeepingTime);
  CHECK(shortest_wait(one, collective) < shm_backend::kKeepingTime);
  CHECK(shortest_wait(apart, pass) >= shm_backend::kKeepingTime);
  CHECK(shortest_wait(together, pass) < shm_backend::kKeepingTime);
}
