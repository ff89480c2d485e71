// Adds up how long calls take.
#pragma once

#include <chrono>
#include <utility>

namespace digits {

class Stopwatch {
 public:
  // Runs `call`, which returns nothing. The time of a call that throws does not count.
  template <class Call>
  void operator()(Call&& call) {
    const auto start = Clock::now();
    std::forward<Call>(call)();
    seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
  }
  double seconds() const noexcept { return seconds_; }
  void reset() noexcept { seconds_ = 0; }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_ = 0;
};

}  // namespace digits
