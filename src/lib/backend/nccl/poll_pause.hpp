// The pauses while polling for something that nobody announces. At first there are none, because the answer may come in
// microseconds. Then they grow, to leave the processor to others.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include <col/job.hpp>

namespace col::nccl_backend {

class PollPause {
 public:
  // Waits for a moment. Throws what wait.check() throws.
  void operator()(WaitContext& wait) {
    // The clock is read less often than the device is polled.
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
