// How a rank sleeps until another one has done something for it.
//
// The word is kAsleep from arm() until somebody rings, or until the sleeper gives up. That no ring is missed is
// Dekker's argument: the sleeper writes the word, then looks a last time at what others write (tails, heads, `left`,
// the abort record); the others write that, then look at the word. All four accesses are seq_cst, so in their one order
// either the sleeper's look comes after the other's write and finds it, or the other's look comes after arm() and
// rings. A ringer that is killed before it wakes the sleeper costs no more than the sleeper's bound.
#pragma once

#include <atomic>
#include <cstdint>

#include <col/types.hpp>

namespace col::shm_backend {

class Doorbell {
 public:
  explicit Doorbell(std::atomic<std::uint32_t>& word) noexcept : word_(word) {}

  // For the rank that owns it: arm(), look a last time, then sleep() or disarm().
  void arm() noexcept { word_.store(kAsleep, std::memory_order_seq_cst); }
  // relaxed: a ring that comes too late only costs the ringer a system call.
  void disarm() noexcept { word_.store(kAwake, std::memory_order_relaxed); }
  // Returns when it was rung, after `at_most`, or for no reason.
  void sleep(Duration at_most) noexcept;

  // For the others. Cheap while the owner is awake.
  void ring() noexcept {
    // Of several ringers the first one wakes. relaxed: the exchange chooses, nothing is read because of it.
    if (word_.load(std::memory_order_seq_cst) == kAsleep &&
        word_.exchange(kAwake, std::memory_order_relaxed) == kAsleep)
      wake();
  }

 private:
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kAsleep = 1;
  void wake() noexcept;

  std::atomic<std::uint32_t>& word_;
};

}  // namespace col::shm_backend
