// How a rank sleeps until another rank has done something for it.
//
// The word is kAsleep from arm() until another rank rings, or until the sleeper gives up. No ring is missed, by
// Dekker's argument. The sleeper writes the word, and then looks a last time at what others write (tails, heads,
// `left`, the abort record). The others write one of these, and then look at the word. All four accesses are seq_cst.
// So in their one total order, either the sleeper's look comes after the other's write and sees it, or the other's look
// comes after arm(), and it rings. If a ringer is killed before it wakes the sleeper, the sleeper only sleeps until its
// time limit.
#pragma once

#include <atomic>
#include <cstdint>

#include <col/types.hpp>

namespace col::shm_backend {

class Doorbell {
 public:
  explicit Doorbell(std::atomic<std::uint32_t>& word) noexcept : word_(word) {}

  // For the owner: call arm(), look a last time, then call sleep() or disarm().
  void arm() noexcept { word_.store(kAsleep, std::memory_order_seq_cst); }
  // relaxed: a ring that comes too late only costs the ringer one system call
  void disarm() noexcept { word_.store(kAwake, std::memory_order_relaxed); }
  // Returns after a ring, after `at_most`, or for no reason.
  void sleep(Duration at_most) noexcept;

  // For the other ranks. Cheap while the owner is awake.
  void ring() noexcept {
    // The first of several ringers wakes the owner. relaxed: the exchange only chooses one of them; no data is read
    // because of it.
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
