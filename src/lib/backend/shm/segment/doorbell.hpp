// How a rank sleeps until another rank has done something for it.
//
// The word is kAsleep from arm() until another rank rings, or until the sleeper disarms it. The sleeper arms it
// (seq_cst), and then looks a last time at what others write (frames, heads, counters, `left`, the abort record). The
// others write one of these, and then look at the word. Who needs certainty does both with seq_cst: in their one total
// order, either the sleeper's look comes after the other's write and sees it, or the other's look comes after arm(),
// and it rings (Dekker's argument).
//
// Where speed counts, a rank writes with release only, and does not wait until its write is seen by others before it
// looks at the word. Then both looks can be too early, but only for a write that was on its way when the sleeper armed
// the word. It arrives within a microsecond. So the sleeper looks a second time after a nap, while the word stays armed
// (sleep_unless()); later writes find it armed. A test runs all interleavings, store buffers included
// (tests/unit/shm/native_sleep_test.cpp). If a ringer is killed before it wakes the sleeper, the sleeper only sleeps
// until its time limit.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include <col/job.hpp>
#include <col/types.hpp>

#include "core/clock/clock.hpp"

namespace col::shm_backend {

class Doorbell {
 public:
  explicit Doorbell(std::atomic<std::uint32_t>& word) noexcept : word_(word) {}

  // ---- For the owner
  // The whole of it: arms, looks, naps, looks, sleeps for `at_most` or until there are news for `wait`, disarms. `look`
  // returns whether there is a reason not to sleep, and may throw.
  template <class Look>
  void sleep_unless(Look look, Duration at_most, const WaitContext& wait) {
    struct Disarm {
      Doorbell& doorbell;
      ~Disarm() { doorbell.disarm(); }
    } const disarm{*this};
    arm();
    if (look() || !nap() || look()) return;
    if (at_most > kNap) sleep(at_most, wait);
  }

  // The same without the nap: it keeps the processor while what was on its way arrives. For a sleep that is likely to
  // be a long one, to which the end of a nap only adds.
  template <class Look>
  void sleep_at_once_unless(Look look, Duration at_most, const WaitContext& wait) {
    struct Disarm {
      Doorbell& doorbell;
      ~Disarm() { doorbell.disarm(); }
    } const disarm{*this};
    arm();
    if (look()) return;
    const auto arrived = core::Clock::now() + kArrival;
    while (core::Clock::now() < arrived) continue;
    if (!look()) sleep(at_most, wait);
  }

  // For the other ranks. Cheap while the owner is awake.
  void ring() noexcept {
    // The first of several ringers wakes the owner. relaxed: the exchange only chooses one of them; no data is read
    // because of it.
    if (word_.load(std::memory_order_seq_cst) == kAsleep &&
        word_.exchange(kAwake, std::memory_order_relaxed) == kAsleep)
      core::wake_word(word_);
  }

 private:
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kAsleep = 1;
  // Stores are seen by other processors within a microsecond.
  static constexpr Duration kArrival = std::chrono::microseconds(2);
  static constexpr Duration kNap = std::chrono::microseconds(50);

  void arm() noexcept { word_.store(kAsleep, std::memory_order_seq_cst); }
  // relaxed: a ring that comes too late only costs the ringer one system call
  void disarm() noexcept { word_.store(kAwake, std::memory_order_relaxed); }
  // Returns after a ring, after `at_most`, when there are news, or for no reason.
  void sleep(Duration at_most, const WaitContext& wait) noexcept {
    const WaitContext::News news = wait.news();
    core::wait_on_words(word_, kAsleep, {news.word, news.seen}, at_most);
  }
  // Returns after a ring, or after kNap: not for no reason, as what was on its way then need not have arrived. Returns
  // whether nobody has rung: it is still armed then.
  bool nap() noexcept {
    // relaxed: the caller looks again at all that it waits for.
    const auto is_armed = [this] { return word_.load(std::memory_order_relaxed) == kAsleep; };
    const auto end = core::Clock::now() + kNap;
    for (auto now = core::Clock::now(); is_armed() && now < end; now = core::Clock::now())
      core::wait_on_word(word_, kAsleep, end - now);
    return is_armed();
  }

  std::atomic<std::uint32_t>& word_;
};

}  // namespace col::shm_backend
