// A steady stream of messages allocates nothing: counts what this program's operator new hands out to a thread.
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "unit/shm/shm_ranks.hpp"

namespace {

thread_local std::uint64_t allocations = 0;

void* allocate_or_null(std::size_t bytes) noexcept {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}

void* allocate(std::size_t bytes) {
  if (void* const memory = allocate_or_null(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
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

using namespace col;
using namespace col::test;

namespace {

// Messages of several lengths to and from one peer.
class Exchange {
 public:
  Exchange(ShmChannel& channel, int peer) : channel_(channel), peer_(peer) {
    for (const std::size_t count : kCounts) {
      out_.emplace_back(count, 1.0F);
      in_.emplace_back(count);
    }
    tickets_.reserve(1000);
  }

  // `rounds` rounds of which all messages but the last have come before their receive is posted.
  void run(int rounds) {
    tickets_.clear();
    const std::uint64_t first = slot_;
    for (int round = 0; round < rounds; ++round, slot_ += kRound) {
      for (std::size_t i = 0; i < std::size(kCounts); ++i)
        tickets_.push_back(channel_.post_send(peer_, slot_ + (i << 32), out_[i]));
    }
    for (std::uint64_t slot = slot_; slot > first;) {
      slot -= kRound;
      for (std::size_t i = std::size(kCounts); i-- > 0;) finish(channel_.post_recv(peer_, slot + (i << 32), in_[i]));
    }
    for (const Ticket ticket : tickets_) finish(ticket);
  }

 private:
  static constexpr std::size_t kCounts[] = {0, 10, 1000, 40'000};
  static constexpr std::uint64_t kRound = 100ULL << 32;  // the upper half of a slot tells messages apart

  // By turns, as both may be used.
  void finish(Ticket ticket) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (ticket.id % 2 == 0 && !deadline.expired()) {
      if (channel_.test(ticket)) return;
      std::this_thread::yield();
    }
    wait_for(channel_, ticket);
  }

  ShmChannel& channel_;
  const int peer_;
  std::uint64_t slot_ = 1;
  std::vector<std::vector<float>> out_, in_;
  std::vector<Ticket> tickets_;
};

}  // namespace

TEST_CASE("shm: a steady stream of messages allocates nothing, early or late, small or large", "[shm]") {
  require_well(run_ranks(2, [](int rank, ShmChannel& channel) {
    Exchange exchange(channel, 1 - rank);
    exchange.run(20);
    const std::uint64_t before = allocations;
    for (int i = 0; i < 100; ++i) exchange.run(1 + i % 3);
    expect(allocations == before, std::to_string(allocations - before) + " allocations");
  }));
}
