// How the launchers of a job's nodes find that one of them is gone without a word: its host is dead or frozen, or its
// link is cut. Each says at short intervals that it lives. The launcher says so, not its ranks: these may compute for
// an hour, or be stopped.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <col/trace.hpp>

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

// How far the clock of this host is ahead of the meeting's, from questions and answers: the answer was given at some
// moment between the two, so half of the time between them is the error.
class ClockSamples {
 public:
  // All in nanoseconds of CLOCK_MONOTONIC: asked and heard here, answered there.
  void add(std::int64_t asked_ns, std::int64_t answered_ns, std::int64_t heard_ns) {
    if (heard_ns < asked_ns) return;
    const std::int64_t middle = asked_ns + (heard_ns - asked_ns) / 2;
    const Sample sample{middle, middle - answered_ns, static_cast<std::uint64_t>(heard_ns - asked_ns + 1) / 2};
    // One early and one late good one are enough: clocks drift evenly over the time of a job.
    if (samples_ < kEarly) {
      if (!early_ || sample.error_ns < early_->error_ns) early_ = sample;
    } else if (!late_ || sample.error_ns <= late_->error_ns * 2 || samples_ - late_at_ >= kStale) {
      late_ = sample;
      late_at_ = samples_;
    }
    ++samples_;
  }

  bool needs_more_early() const { return samples_ < kEarly; }

  // Nothing if nobody has answered.
  std::optional<ClockShift> shift() const {
    if (!early_) return std::nullopt;
    const Sample& last = late_ ? *late_ : *early_;
    return ClockShift{early_->at_ns, early_->ahead_ns, last.at_ns, last.ahead_ns,
                      std::max(early_->error_ns, last.error_ns)};
  }

 private:
  struct Sample {
    std::int64_t at_ns = 0, ahead_ns = 0;
    std::uint64_t error_ns = 0;
  };
  static constexpr std::size_t kEarly = 8;
  // After so many worse ones, a good one is too old to say how the clock has drifted.
  static constexpr std::size_t kStale = 30;

  std::optional<Sample> early_, late_;
  std::size_t samples_ = 0, late_at_ = 0;
};

}  // namespace col::launch
