// How the launchers of a job's nodes find that one of them is gone without a word: its host is dead or frozen, or its
// link is cut. Each says at short intervals that it lives. The launcher says so, not its ranks: these may compute for
// an hour, or be stopped.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "launch/job/job_spec.hpp"

namespace col::launch {

struct Pulse {
  static constexpr Milliseconds kDefault{5'000};

  // So that a loss is known within `host_timeout`, with what it takes to tell the ranks.
  explicit Pulse(Milliseconds host_timeout = kDefault)
      : interval(std::min<Milliseconds>(Milliseconds(1'000), host_timeout / 5)), silence(host_timeout * 4 / 5) {}

  Milliseconds interval;  // between two signs of life
  Milliseconds silence;   // without one, the other side is lost

  std::string why_lost() const {
    return fmt::format("nothing was heard of it for {:g} s", std::chrono::duration<double>(silence).count());
  }
};

// Notices that this process itself stood still: what was not heard meanwhile is no silence.
class OwnPauses {
 public:
  using Time = core::Clock::time_point;

  explicit OwnPauses(Time now) : looked_at_(now) {}

  // Call it more often than `pulse.interval`. How long the process has stood still since the last time.
  Time::duration look(Time now, const Pulse& pulse) {
    const auto passed = now - looked_at_;
    looked_at_ = now;
    return passed > pulse.silence / 2 ? passed : Time::duration::zero();
  }

 private:
  Time looked_at_;
};

}  // namespace col::launch
