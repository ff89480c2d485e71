// The thread that sleeps on UCX's descriptor in a rank's place: it rings when it was asked to, once, and no later.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <sys/eventfd.h>

#include "backend/ucx/watcher.hpp"
#include "core/unique_fd.hpp"
#include "support/catch.hpp"

namespace {

using namespace std::chrono_literals;
using col::ucx_backend::Watcher;

class Events {
 public:
  int get() const { return descriptor_.get(); }
  void come() { ::eventfd_write(get(), 1); }
  void take() {
    eventfd_t value = 0;
    ::eventfd_read(get(), &value);
  }

 private:
  col::core::UniqueFd descriptor_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

bool comes_to(const std::atomic<int>& count, int expected) {
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (count < expected && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return count == expected;
}

}  // namespace

TEST_CASE("ucx watcher: rings once for each time that it is asked, whether the event comes before or after", "[ucx]") {
  Events events;
  std::atomic<int> rings = 0;
  Watcher watcher(events.get(), [&] { ++rings; });
  events.come();  // nobody has asked yet: the first ring is the one below
  for (int round = 1; round <= 100; ++round) {
    watcher.watch();
    if (round % 2 == 0) events.come();
    REQUIRE(comes_to(rings, round));
    events.take();
    if (round % 2 == 0) events.come();  // while nobody sleeps
    if (round % 2 == 0) continue;
    watcher.watch();  // twice without an event is once
    watcher.watch();
    events.come();
    REQUIRE(comes_to(rings, round + 1));
    events.take();
    rings = round;
  }
}

TEST_CASE("ucx watcher: may ask anew from the ring itself, and nothing is lost", "[ucx]") {
  Events events;
  std::atomic<int> rings = 0;
  Watcher* self = nullptr;
  const auto watcher = std::make_unique<Watcher>(events.get(), [&] {
    if (++rings < 1000) self->watch();
  });
  self = watcher.get();
  events.come();
  self->watch();
  CHECK(comes_to(rings, 1000));
}

TEST_CASE("ucx watcher: ends while it watches, and while it does not", "[ucx]") {
  Events events;
  std::atomic<int> rings = 0;
  for (int round = 0; round < 100; ++round) {
    Watcher watcher(events.get(), [&] { ++rings; });
    if (round % 2 == 0) watcher.watch();
  }
  CHECK(rings == 0);
  events.come();
  CHECK(rings == 0);  // the last one is gone
}
