// How a rank waits in a collective: it polls, then yields to others, then sleeps.
#pragma once

#include <atomic>
#include <cstdint>

#include <col/job.hpp>

#include "backend/shm/native/yielding.hpp"
#include "backend/shm/segment/layout.hpp"
#include "backend/shm/segment/segment.hpp"

namespace col::shm_backend {

// The other duties of a rank, done while it waits.
class Attendant {
 public:
  // Moves the messages of this rank forward. Throws if the group has ended, and the mismatch of a message.
  virtual void attend() = 0;

 protected:
  ~Attendant() = default;
};

// Thrown by a wait for a rank that has made another call.
struct OtherCall {
  int peer;
};

// What a rank waits for: that `peer` raises one of its counters to `value`.
struct Awaited {
  const std::atomic<std::uint64_t>* counter = nullptr;
  std::uint64_t value = 0;
  int peer = -1;

  // acquire: what the peer did before is there. seq_cst, as it is the last look of a rank that goes to sleep
  // (doorbell.hpp).
  bool is_there() const noexcept { return counter->load(std::memory_order_seq_cst) >= value; }
};

// How long a rank keeps its processor while it waits for one that has another processor for certain. It wins nothing by
// making way for that rank, and a process of somebody else's gives the processor back when the scheduler says so: after
// most of a millisecond, or more. What comes by itself within a part of that is worth more than politeness.
inline constexpr Duration kKeepingTime = std::chrono::microseconds(250);

// How long a rank polls, yields and sleeps.
struct Patience {
  int looks = 0;                 // polls in a row, at full speed, before the first yield
  Duration yields = {};          // how long it yields before it sleeps
  bool keeps_processor = false;  // for kKeepingTime; see Segment::are_apart()
  bool crowded = true;

  // `crowded`: there are more ranks than processors, so the awaited rank may itself be waiting for its processor.
  // `looks`: of a rank that has its own.
  static Patience of(bool crowded, std::uint32_t looks) noexcept;
};

inline void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What comes within some hundred cycles is seen without the time that a pause takes: as much as a line needs to come.
template <class Look>
bool looks_without_pause(Look look) noexcept {
  constexpr int kLooks = 40;
  for (int i = 0; i < kLooks; ++i) {
    if (look()) return true;
  }
  return false;
}

class Waiter {
 public:
  // Requires: all arguments outlive it.
  Waiter(const Segment& segment, int rank, Attendant& attendant) noexcept
      : segment_(segment), area_(segment.area()), rank_(rank), attendant_(attendant) {}

  void set_patience(const Patience& patience) noexcept {
    patience_ = patience;
    yielding_.set_crowded(patience.crowded);
  }
  // Sets the call that the following waits belong to.
  void set_call(std::uint64_t number, std::uint64_t fingerprint) noexcept {
    call_ = number;
    fingerprint_ = fingerprint;
  }

  const Patience& patience() const noexcept { return patience_; }

  // Looks once whether this rank waits in vain, and moves its messages forward. Throws peer_lost if the awaited rank
  // has left the group, what ended the group, and OtherCall.
  void look(const Awaited& awaited);
  // Blocks until it is there. Throws what look() throws, and what wait.check() throws.
  void wait_for(const Awaited& awaited, WaitContext& wait);

  // Call it after this rank has stored (release) something that others may sleep for. relaxed: see sleep().
  void wake_others() noexcept {
    if (area_.header().sleepers.load(std::memory_order_relaxed) != 0) ring_waiting();
  }

 private:
  void sleep(const Awaited& awaited, WaitContext& wait);
  void ring_waiting() noexcept;

  const Segment& segment_;
  const Area area_;
  const int rank_;
  Attendant& attendant_;
  Patience patience_;
  Yielding yielding_;
  std::uint64_t call_ = 0, fingerprint_ = 0;
};

}  // namespace col::shm_backend
