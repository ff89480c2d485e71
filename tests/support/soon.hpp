// Waits in a test for what another thread or process does.
#pragma once

#include <chrono>
#include <thread>

namespace col::test {

// Returns true once the condition holds, false if it does not within 20 seconds: a ceiling, which no test comes near.
template <class Condition>
bool soon(const Condition& condition) {
  const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > latest) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace col::test
