// The pauses between looks at something that nobody will announce: none at first, when an answer may come in
// microseconds, then longer ones, to leave the processor to others.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include <col/job.hpp>

namespace col::nccl_backend {

class PollPause {
 public:
  // Waits a little; throws what wait.check() throws.
  void operator()(WaitContext& wait) {
    // The clock is read less often than the device is asked.
    if (++turns_ % kTurnsPerCheck == 0) wait.check();
    if (turns_ < kEagerTurns) return;
    std::this_thread::sleep_for(std::min<Duration>(pause_, wait.slice()));
    pause_ = std::min(2 * pause_, kLongest);
    wait.check();
  }

 private:
  static constexpr int kTurnsPerCheck = 64;
  static constexpr int kEagerTurns = 2000;
  static constexpr Duration kFirst = std::chrono::microseconds(20);
  static constexpr Duration kLongest = std::chrono::milliseconds(1);

  int turns_ = 0;
  Duration pause_ = kFirst;
};

}  // namespace col::nccl_backend
