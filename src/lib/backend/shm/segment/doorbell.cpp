#include "backend/shm/segment/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>

namespace col::shm_backend {

// Not the private kind of futex: the word is in memory that processes share.

void Doorbell::sleep(Duration at_most) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(seconds.count());
  limit.tv_nsec = static_cast<long>((at_most - seconds).count());
  // Whatever it returns (rung before it slept, time over, a signal), the caller looks again.
  ::syscall(SYS_futex, &word_, FUTEX_WAIT, kAsleep, &limit, nullptr, 0);
}

bool Doorbell::nap() noexcept {
  const auto clock = [] { return std::chrono::steady_clock::now(); };
  // relaxed: the caller looks again at all that it waits for.
  const auto is_armed = [this] { return word_.load(std::memory_order_relaxed) == kAsleep; };
  const auto end = clock() + kNap;
  for (auto now = clock(); is_armed() && now < end; now = clock()) sleep(end - now);
  return is_armed();
}

void Doorbell::wake() noexcept {
  ::syscall(SYS_futex, &word_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace col::shm_backend
