#include "backend/shm/native/waiter.hpp"

#include <sched.h>

#include <chrono>

#include <fmt/format.h>

#include "backend/shm/doorbell.hpp"

namespace col::shm_backend {
namespace {

using Clock = std::chrono::steady_clock;

// Measured (docs/performance.md): a line goes from processor to processor in 0.05 to 0.15 us, a yield to a rank on the
// same processor takes about 1 us, and waking one that sleeps 30 us.
constexpr int kLooksAlone = 60;
constexpr int kLooksCrowded = 3;
constexpr Duration kYields = std::chrono::milliseconds(1);
constexpr int kYieldsPerLook = 8;

}  // namespace

Patience Patience::of(bool crowded) noexcept {
  return {crowded ? kLooksCrowded : kLooksAlone, kYields};
}

void Waiter::wait_on(Condition ready, int peer, WaitContext& wait) {
  wait.describe([peer] { return fmt::format("data from rank {}", peer); });
  for (bool told = false;; told = true) {
    const auto until = Clock::now() + patience_.yields;
    do {
      // A look at everything costs as much as some yields: most waits end without.
      for (int i = 0; i < kYieldsPerLook; ++i) {
        ::sched_yield();
        if (ready()) return;
      }
      if (look(ready, peer, wait)) return;
    } while (Clock::now() < until);
    if (!told && wait.record() != nullptr) wait.record()->waiting(-1, peer);
    sleep(ready, peer, wait);
    if (look(ready, peer, wait)) return;
  }
}

bool Waiter::look(Condition ready, int peer, WaitContext& wait) {
  if (ready()) return true;
  // Looked at before the last look: what a rank did before it left is there.
  const bool gone = segment_.place(peer).left.load(std::memory_order_seq_cst) != 0;
  attendant_.attend();
  if (ready()) return true;
  const auto theirs = area_.done(peer).fingerprint_of(call_);
  if (theirs && *theirs != fingerprint_) throw OtherCall{peer};
  wait.check();
  if (!gone) return false;
  throw Error(ErrorCode::peer_lost,
              fmt::format("rank {} left the group while this rank waits for its part in a collective; every rank must "
                          "make the same calls before it destroys the group",
                          peer),
              {}, peer);
}

void Waiter::sleep(Condition ready, int peer, WaitContext& wait) {
  auto& sleepers = area_.header().sleepers;
  Doorbell doorbell(segment_.place(rank_).doorbell);
  // seq_cst: whoever stores what this rank waits for, looks at `sleepers` afterwards, and this rank looks at what is
  // stored after it has counted itself (doorbell.hpp).
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  doorbell.arm();
  try {
    if (look(ready, peer, wait))
      doorbell.disarm();
    else
      doorbell.sleep(wait.slice());
  } catch (...) {
    doorbell.disarm();
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
    throw;
  }
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void Waiter::ring_all() noexcept {
  for (int other = 0; other < segment_.size(); ++other) {
    if (other != rank_) Doorbell(segment_.place(other).doorbell).ring();
  }
}

}  // namespace col::shm_backend
