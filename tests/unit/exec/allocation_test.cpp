// A collective that has run before allocates nothing when it runs again.
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <vector>

#include <col/channel.hpp>
#include <col/col.hpp>

#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/same_process.hpp"

namespace {

std::atomic<long> allocations{0};

void* counted(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

constexpr int kMembers = 3;

// Time that hardly passes, whatever else the machine does: a wait that lasts looks for the reason, and allocates.
class SlowTime final : public col::test::SameProcess {
 public:
  Time now() noexcept override { return began_ + std::chrono::nanoseconds(looks_.fetch_add(1)); }
  std::chrono::system_clock::time_point wall_now() noexcept override { return {}; }
  void yield() noexcept override { ::sched_yield(); }
  // As if each sleep ended for no reason.
  void block(const void* /*address*/, Time /*until*/) noexcept override { ::sched_yield(); }
  void wake(const void* /*address*/, bool /*all*/) noexcept override {}
  int poll(std::span<pollfd> descriptors, Time /*until*/) noexcept override {
    ::sched_yield();
    return ::poll(descriptors.data(), descriptors.size(), 0);
  }
  int start_thread(std::function<void()> /*body*/) override { throw std::logic_error("a call starts a thread"); }
  void join_thread(int /*number*/) noexcept override {}
  const col::core::Host& host() noexcept override { return host_; }

 private:
  const col::core::Host host_ = {"a-host", "a-boot", "its-processes", "its-network"};
  const Time began_ = col::Deadline::Clock::now();
  std::atomic<long> looks_{0};
};

struct Buffers {
  std::vector<float> data = std::vector<float>(1000, 1.0F), out = std::vector<float>(1000);
  std::vector<col::bfloat16> half = std::vector<col::bfloat16>(500);
};

// From the first rank to after the last one. What a process keeps to its end hangs on the time: so does that.
class WithSlowTime {
 public:
  WithSlowTime() {
    static SlowTime time;
    col::core::installed_scheduler = &time;
  }
  ~WithSlowTime() { col::core::installed_scheduler = nullptr; }
  WithSlowTime(const WithSlowTime&) = delete;
  WithSlowTime& operator=(const WithSlowTime&) = delete;
};

// Makes the calls of a group over shared memory, whose channel does not allocate either, again and again: `prepare`
// returns what makes them. Checks that they allocate nothing, once they have been made before.
template <class Prepare>
void check_no_allocation(Prepare prepare) {
  const auto* factory = col::find_backend("shm");
  if (factory == nullptr || factory->unavailable_reason()) return;
  // Until a queue has been as long as it gets, it may grow. And a group keeps two calls in one place: where three meet
  // by their addresses, they are made anew each time. So each attempt has its own buffers; one that allocates nothing
  // is enough.
  std::atomic<long> before{0}, least{std::numeric_limits<long>::max()};
  const WithSlowTime slow;
  const auto outcomes = col::test::run_threads(kMembers, [&](int rank, col::Context& context) {
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = kMembers, .backend_name = "shm"});
    std::deque<Buffers> all;
    for (int attempt = 0; attempt < 5; ++attempt) {
      Buffers& buffers = all.emplace_back();
      const auto once = prepare(group, buffers.data, buffers.out, buffers.half);
      const auto calls = [&] {
        for (int i = 0; i < 20; ++i) once();
      };
      calls();
      calls();
      group.barrier();
      if (rank == 0) before = allocations.load();
      group.barrier();
      calls();
      group.barrier();
      if (rank == 0) least = std::min(least.load(), allocations.load() - before.load());
      group.barrier();
    }
  });
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
  CHECK(least == 0);
}

}  // namespace

TEST_CASE("executor: the steady state allocates nothing", "[exec]") {
  check_no_allocation([](col::Group& group, auto& data, auto& out, auto& half) {
    return [&] {
      group.allreduce(data, out, {.algorithm = "ring"});
      group.allreduce(data, out);
      group.allreduce(half);
      group.broadcast(out, {.root = 1});
      group.barrier();
    };
  });
}

TEST_CASE("prepared calls: a start allocates nothing", "[exec]") {
  check_no_allocation([](col::Group& group, auto& data, auto& out, auto& half) {
    struct Calls {
      col::PreparedCall ring, sum, broadcast;
    };
    auto calls = std::make_shared<Calls>();
    const col::Call sum{.collective = col::Collective::allreduce, .in = data, .out = out};
    calls->ring = group.prepare(sum, {.algorithm = "ring"});
    calls->sum = group.prepare(sum);
    calls->broadcast = group.prepare({.collective = col::Collective::broadcast, .out = half}, {.root = 1});
    return [calls] {
      calls->ring.start();
      calls->broadcast.start();
      calls->ring.wait();
      calls->sum.start();
      calls->sum.wait();
      calls->broadcast.wait();
    };
  });
}
