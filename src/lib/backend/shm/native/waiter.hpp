// How a rank waits in a collective: it polls, then yields to others, then sleeps.
#pragma once

#include <cstdint>

#include <col/job.hpp>

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

// How long a rank polls, yields and sleeps.
struct Patience {
  int looks = 0;         // polls in a row, at full speed, before the first yield
  Duration yields = {};  // how long it yields before it sleeps

  // `crowded`: there are more ranks than processors, so the awaited rank may itself be waiting for its processor.
  static Patience of(bool crowded) noexcept;
};

inline void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Waiter {
 public:
  // Requires: all arguments outlive it.
  Waiter(const Segment& segment, int rank, Attendant& attendant) noexcept
      : segment_(segment), area_(segment.area()), rank_(rank), attendant_(attendant) {}

  void set_patience(const Patience& patience) noexcept { patience_ = patience; }
  // Sets the call that the following waits belong to.
  void set_call(std::uint64_t number, std::uint64_t fingerprint) noexcept {
    call_ = number;
    fingerprint_ = fingerprint;
  }

  // Waits until ready(), which reads with at least acquire. `peer` is the rank that it waits for; it is lost if it has
  // left the group. Throws what wait.check() throws, peer_lost, what ended the group, and OtherCall.
  template <class Ready>
  void until(Ready ready, int peer, WaitContext& wait) {
    for (int i = 0; i <= patience_.looks; ++i) {
      if (ready()) return;
      pause_briefly();
    }
    wait_on({[](void* r) { return (*static_cast<Ready*>(r))(); }, &ready}, peer, wait);
  }

  // Call it after this rank has stored something that others may sleep for (seq_cst, see doorbell.hpp).
  void wake_others() noexcept {
    if (area_.header().sleepers.load(std::memory_order_seq_cst) != 0) ring_waiting();
  }

 private:
  struct Condition {
    bool (*look)(void*);
    void* argument;
    bool operator()() const { return look(argument); }
  };

  void wait_on(Condition ready, int peer, WaitContext& wait);
  bool look(Condition ready, int peer, WaitContext& wait);
  void sleep(Condition ready, int peer, WaitContext& wait);
  void ring_waiting() noexcept;

  const Segment& segment_;
  const Area area_;
  const int rank_;
  Attendant& attendant_;
  Patience patience_;
  std::uint64_t call_ = 0, fingerprint_ = 0;
};

}  // namespace col::shm_backend
