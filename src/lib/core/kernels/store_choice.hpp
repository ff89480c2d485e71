// How a rank writes what another one reads next, into memory of which it uses only a part at a time:
//   again:   whole lines, into the same part as last time, which stays in near caches
//   onward:  whole lines, into the part that it has left alone for longest
//   past:    past the caches, into the same part
//
// A line that the reader has had lately is in the cache of another processor. Where the two share no near cache, it is
// written up to five times as slowly as one that has left it, or as memory; where they do, nothing is faster. No
// machine says which of the two it is, and one that moves its processors changes it in seconds (docs/measurements.md).
// So each rank times some of what it writes. It needs to agree with nobody: the bits are equal.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/kernels/fold.hpp"

namespace col::core {

class StoreChoice {
 public:
  enum class Way : std::uint8_t { again, onward, past };
  // Who reads what is written past the caches, and so fetches it from memory: others, while the writer goes on, or the
  // writer too, as much of theirs.
  enum class Readers : std::uint8_t { others, all };
  struct Terms {
    Readers readers = Readers::others;
    unsigned round = 0;  // after so many times onward, the first part is next again; 0: there is no other part
  };

  static Stores stores_of(Way way) noexcept { return way == Way::past ? Stores::streaming : Stores::cached; }

  // The best way, as far as it is known.
  Way best(Terms terms) const noexcept {
    Way best = Way::again;
    std::uint64_t cost = of(Way::again).cost();
    // Better by more than the times vary.
    if (const std::uint64_t onward = of(Way::onward).cost(); terms.round != 0 && onward != 0 && onward * 5 < cost * 4) {
      best = Way::onward;
      cost = onward;
    }
    // Clearly faster: half as fast again. What is in memory costs its readers time, too, which this rank sees only
    // where it waits for them or is one of them. They save as much of it where lines would else come from another near
    // cache.
    const bool is_dear = terms.readers == Readers::all || best == Way::onward;
    const std::uint64_t paid = of(Way::past).cost() * (is_dear ? 2 : 1);
    return paid != 0 && paid * 3 < cost * 2 ? Way::past : best;
  }
  // Calls `write(way)`, which writes at most so many bytes in that way, and returns how many.
  template <class Write>
  void run(Terms terms, std::size_t bytes, const Write& write) {
    const Turn turn = bytes < kLeastTimed ? Turn{Way::again, false} : next(terms);
    if (!turn.is_timed) {
      write(turn.way);
      return;
    }
    const auto begin = std::chrono::steady_clock::now();
    const std::size_t written = write(turn.way);
    const auto time = std::chrono::steady_clock::now() - begin;
    if (written >= kLeastTimed)
      took(turn.way, static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count()), written);
  }

  // ---- The parts of run()
  struct Turn {
    Way way;
    bool is_timed;
  };
  Turn next(Terms terms) noexcept {
    if (left_ == 0) {
      const Way best = this->best(terms);
      if (until_trial_ != 0 && knows_all(terms)) return {best, --until_trial_ % kTimed == 0};
      do trial_ = following(trial_);
      while (!allows(terms, trial_) || (of(trial_).is_known() && trial_ == best));
      left_ = kTrial + (trial_ == Way::onward ? terms.round : 0);
      until_trial_ = kBetween * left_;
    }
    if (!allows(terms, trial_)) {  // that trial waits for calls that it is for, but not for ever
      if (--until_trial_ == 0) left_ = 0;
      return {best(terms), until_trial_ % kTimed == 0};
    }
    --left_;
    return {trial_, left_ < kTrial / 2};
  }
  void took(Way way, std::uint64_t nanoseconds, std::size_t bytes) noexcept {
    Times& times = ways_[static_cast<std::size_t>(way)];
    times = {.last = nanoseconds * kUnit / bytes + 1, .before = times.last};
  }

  static constexpr std::size_t kLeastTimed = 4096;
  static constexpr unsigned kTimed = 8;  // one in so many
  // So many in a row are another way's, and the second half of them is timed: the first ones find what the way before
  // has left. Then so many times as many are the best way's.
  static constexpr unsigned kTrial = 8, kBetween = 64;

 private:
  static constexpr std::uint64_t kUnit = std::uint64_t{1} << 20;  // costs are for so many bytes
  static constexpr std::size_t kWays = 3;

  // Of the last two times the lesser one: a rank that lost its processor in one of them says nothing about memory.
  struct Times {
    std::uint64_t last = 0, before = 0;  // zero: not known

    bool is_known() const noexcept { return before != 0; }
    std::uint64_t cost() const noexcept { return is_known() ? std::min(last, before) : 0; }
  };
  const Times& of(Way way) const noexcept { return ways_[static_cast<std::size_t>(way)]; }
  static Way following(Way way) noexcept { return static_cast<Way>((static_cast<std::size_t>(way) + 1) % kWays); }
  static bool allows(Terms terms, Way way) noexcept { return terms.round != 0 || way != Way::onward; }
  bool knows_all(Terms terms) const noexcept {
    return of(Way::again).is_known() && of(Way::past).is_known() && (terms.round == 0 || of(Way::onward).is_known());
  }

  std::array<Times, kWays> ways_{};
  Way trial_ = Way::past;  // the last one; the first trial is of the way after it
  unsigned left_ = 0, until_trial_ = 0;
};

}  // namespace col::core
