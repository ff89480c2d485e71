// When the event thread of a context stands aside for the rank's own calls, which serve the connections, too. Decisions
// only: no locks, no clock.
//
// clang-format off
//   the rank        quiet   calls   waits   sleeps, gone
//   serving         ·       B       A       ·              A  standing aside for a call that waits
//   A               B       B       ·       ·              B  standing aside for calls that follow one another
//   B               ·       B       A       ·              ·  serving
// clang-format on
#pragma once

#include <chrono>
#include <cstdint>

namespace col::gloo_backend {

class Standby {
 public:
  // As the event thread knows it.
  enum class Rank : std::uint8_t {
    quiet,   // has not called since the event thread has looked
    calls,   // has called since then
    waits,   // in a call, sleeps in net::Poller::wait(), or is about to
    sleeps,  // elsewhere, until it is rung for
    gone,    // the context ends
  };
  enum class Thread : std::uint8_t { serves, aside_for_call, aside_for_calls };

  // How the event thread goes on.
  static constexpr Thread next(Thread now, Rank rank) noexcept {
    switch (rank) {
      case Rank::quiet:
        return now == Thread::aside_for_call ? Thread::aside_for_calls : Thread::serves;
      case Rank::calls:
        return Thread::aside_for_calls;
      case Rank::waits:  // a call that sleeps on: this thread looks, and then leaves the events to it again
        return now == Thread::aside_for_call ? Thread::serves : Thread::aside_for_call;
      case Rank::sleeps:
      case Rank::gone:
        break;
    }
    return Thread::serves;
  }

  // ---- The rank. Both tell whether the event thread is to be notified.
  void begin_call(bool may_wait) noexcept { rank_ = may_wait ? Rank::waits : Rank::calls; }
  bool end_call() noexcept {
    if (rank_ != Rank::waits) return false;
    rank_ = Rank::calls;
    return thread_ == Thread::aside_for_call;
  }
  bool sleep() noexcept {
    rank_ = Rank::sleeps;
    return thread_ != Thread::serves;
  }
  void leave() noexcept { rank_ = Rank::gone; }
  bool call_waits() const noexcept { return rank_ == Rank::waits; }
  bool is_over() const noexcept { return rank_ == Rank::gone; }

  // ---- The event thread. It has served the connections. While a long message comes, it goes on unless a call waits:
  // calls do not look for that.
  void on_served(bool long_message_comes) noexcept {
    if (long_message_comes && rank_ == Rank::calls) rank_ = Rank::quiet;
    move();
  }
  // It has stood aside for time(), or was notified.
  void on_stood() noexcept { move(); }
  // There is something that only it can go on with.
  void serve() noexcept { thread_ = Thread::serves; }

  bool is_aside() const noexcept { return thread_ != Thread::serves; }
  // Says whether its reason to stand aside is still there.
  bool stays_aside() const noexcept {
    return thread_ == Thread::aside_for_call ? call_waits() : rank_ != Rank::sleeps && rank_ != Rank::gone;
  }
  // How long it leaves the events to a call that sleeps, before it looks again; and how long it waits for the next
  // call, where one has followed another. What happens without a call is seen that much later, once.
  std::chrono::microseconds time() const noexcept {
    using namespace std::chrono_literals;
    return thread_ == Thread::aside_for_call ? 20ms : 100us;
  }

 private:
  void move() noexcept {
    thread_ = next(thread_, rank_);
    if (rank_ == Rank::calls) rank_ = Rank::quiet;
  }

  Rank rank_ = Rank::quiet;
  Thread thread_ = Thread::serves;
};

}  // namespace col::gloo_backend
