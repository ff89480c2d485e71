#include "backend/shm/native/waiter.hpp"

#include <chrono>

#include <fmt/format.h>

#include "backend/shm/segment/doorbell.hpp"
#include "core/clock/clock.hpp"

namespace col::shm_backend {
namespace {

using core::Clock;

// A line that is on its way arrives meanwhile.
constexpr int kLooksCrowded = 3;
constexpr Duration kYieldingTime = std::chrono::milliseconds(1);
constexpr Duration kBetweenLooks = std::chrono::microseconds(10);
constexpr int kPauses = 20;  // take about as long as a yield to nobody

}  // namespace

Patience Patience::of(bool crowded, std::uint32_t looks) noexcept {
  return {.looks = crowded ? kLooksCrowded : static_cast<int>(looks), .yields = kYieldingTime, .crowded = crowded};
}

void Waiter::wait_for(const Awaited& awaited, WaitContext& wait) {
  const auto found = [&] {
    if (awaited.is_there()) return true;
    look(awaited);
    wait.check();
    return awaited.is_there();
  };
  wait.describe([peer = awaited.peer] { return fmt::format("rank {} to do its part of a collective", peer); });
  for (bool told = false;; told = true) {
    auto now = Clock::now();
    const auto until = now + patience_.yields;
    const auto gives_way = now + (patience_.keeps_processor ? kKeepingTime : Duration::zero());
    for (auto next_look = now; now < until; now = Clock::now()) {
      bool pays = true;
      if (now >= gives_way)
        pays = yielding_.yield();
      else
        for (int i = 0; i < kPauses && !awaited.is_there(); ++i) pause_briefly();
      if (awaited.is_there()) return wait.resume();
      if (!pays) break;
      // A look at everything costs as much as some yields. By time, as a yield may take long where many compute.
      if (now < next_look) continue;
      next_look = now + kBetweenLooks;
      if (found()) return wait.resume();
    }
    if (!told) wait.waiting(-1, awaited.peer);
    sleep(awaited, wait);
    if (found()) return wait.resume();
  }
}

void Waiter::look(const Awaited& awaited) {
  // Looked at before the last look: what a rank did before it left is there.
  const bool gone = segment_.place(awaited.peer).left.load(std::memory_order_seq_cst) != 0;
  attendant_.attend();
  if (awaited.is_there()) return;
  const auto theirs = area_.done(awaited.peer).fingerprint_of(call_);
  if (theirs && *theirs != fingerprint_) throw OtherCall{awaited.peer};
  if (!gone) return;
  throw Error(ErrorCode::peer_lost,
              fmt::format("rank {} left the group while this rank waits for its part in a collective; every rank must "
                          "make the same calls before it destroys the group",
                          awaited.peer),
              {}, awaited.peer);
}

void Waiter::sleep(const Awaited& awaited, WaitContext& wait) {
  auto& sleepers = area_.header().sleepers;
  // relaxed: a rank that sees the count below sees it too
  segment_.place(rank_).awaited.store(awaited.peer, std::memory_order_relaxed);
  // seq_cst, before the doorbell is armed: a rank that stores what this rank waits for looks at `sleepers` next. That
  // it may look too early, the nap makes good (doorbell.hpp).
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  struct Count {
    std::atomic<std::uint32_t>& sleepers;
    ~Count() { sleepers.fetch_sub(1, std::memory_order_seq_cst); }
  } const count{sleepers};
  const auto is_over = [&] {
    look(awaited);
    wait.check();
    return awaited.is_there();
  };
  Doorbell(segment_.place(rank_).doorbell).sleep_unless(is_over, wait.slice(), wait);
}

// Those who sleep for another rank are left alone: they would only look and sleep again.
void Waiter::ring_waiting() noexcept {
  for (int other = 0; other < segment_.size(); ++other) {
    RankPlace& place = segment_.place(other);
    // relaxed: a sleeper that is counted has stored it before; what one that is awake left there costs a look.
    if (other != rank_ && place.awaited.load(std::memory_order_relaxed) == rank_) Doorbell(place.doorbell).ring();
  }
}

}  // namespace col::shm_backend
