// A collective that has run before allocates nothing when it runs again.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include <col/channel.hpp>
#include <col/col.hpp>

#include "support/catch.hpp"
#include "support/ranks.hpp"

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

// Makes the calls of a group over shared memory, whose channel does not allocate either, again and again: `prepare`
// returns what makes them. Checks that they allocate nothing, once they have been made before.
template <class Prepare>
void check_no_allocation(Prepare prepare) {
  const auto* factory = col::find_backend("shm");
  if (factory == nullptr || factory->unavailable_reason()) return;
  constexpr int kAttempts = 5;
  // A wait that takes long, as on a busy machine, looks for the reason, and allocates: one attempt without is enough.
  std::atomic<long> before{0}, least{std::numeric_limits<long>::max()};
  const auto outcomes = col::test::run_threads(kMembers, [&](int rank, col::Context& context) {
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = kMembers, .backend_name = "shm"});
    std::vector<float> data(1000, 1.0F), out(1000);
    std::vector<col::bfloat16> half(500);
    const auto once = prepare(group, data, out, half);
    const auto calls = [&] {
      for (int i = 0; i < 20; ++i) once();
    };
    calls();
    calls();
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      group.barrier();
      if (rank == 0) before = allocations.load();
      group.barrier();
      calls();
      group.barrier();
      if (rank == 0) least = std::min(least.load(), allocations.load() - before.load());
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
