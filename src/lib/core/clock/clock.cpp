#include "core/clock/clock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>

namespace col {

Deadline::Clock::time_point Deadline::Clock::now() noexcept {
  if (core::Scheduler* const simulated = core::scheduler()) return simulated->now();
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // as std::chrono::steady_clock does
  return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

namespace core {

constinit std::atomic<Scheduler*> installed_scheduler{nullptr};

Scheduler::~Scheduler() = default;

namespace {

// None for less than nothing.
timespec timespec_of(Duration length) noexcept {
  length = std::max(length, Duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(length);
  return {.tv_sec = static_cast<time_t>(seconds.count()), .tv_nsec = static_cast<long>((length - seconds).count())};
}

// Without an end for the longest budget and more: so a scheduler sees a job in which nobody ever goes on.
Clock::time_point after(Duration length) noexcept {
  if (length >= Deadline::kMaxBudget) return Clock::time_point::max();
  return Clock::now() + std::max(length, Duration::zero());
}

// An argument of futex_waitv(2), for headers of older systems. Without FUTEX2_PRIVATE: shared between processes.
struct Waiter {
  Waiter(const std::atomic<std::uint32_t>& word, std::uint32_t value_) noexcept
      : value(value_), address(reinterpret_cast<std::uintptr_t>(&word)) {}

  std::uint64_t value;
  std::uint64_t address;
  std::uint32_t flags = 2;  // a word of 32 bits
  std::uint32_t reserved = 0;
};
constexpr long kFutexWaitv = 449;  // on all processors

}  // namespace

std::chrono::system_clock::time_point wall_now() noexcept {
  if (Scheduler* const simulated = scheduler()) return simulated->wall_now();
  return std::chrono::system_clock::now();
}

void sleep_until(Clock::time_point time) noexcept {
  if (Scheduler* const simulated = scheduler()) return simulated->block(nullptr, time);
  const timespec until = timespec_of(time.time_since_epoch());
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) continue;
}

void sleep_for(Duration length) noexcept {
  if (length > Duration::zero()) sleep_until(after(length));
}

void wait_on_word(const std::atomic<std::uint32_t>& word, std::uint32_t value, Duration at_most) noexcept {
  if (Scheduler* const simulated = scheduler()) {
    if (word.load(std::memory_order_relaxed) == value) simulated->block(&word, after(at_most));
    return;
  }
  const timespec limit = timespec_of(at_most);
  // Not the private kind of futex: the word may be in memory that processes share.
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

// A simulated job sleeps on the first word alone: its ranks wait for messages, and no launcher ends them.
void wait_on_words(const std::atomic<std::uint32_t>& word, std::uint32_t value, WordValue other,
                   Duration at_most) noexcept {
  static constinit std::atomic<bool> can_wait_on_several{true};
  // relaxed: who does not see it yet asks the kernel once more.
  if (other.word == nullptr || scheduler() != nullptr || !can_wait_on_several.load(std::memory_order_relaxed))
    return wait_on_word(word, value, at_most);
  const std::array<Waiter, 2> waiters{Waiter(word, value), Waiter(*other.word, other.value)};
  const timespec until =
      timespec_of((Clock::now() + std::clamp(at_most, Duration::zero(), Deadline::kMaxBudget)).time_since_epoch());
  if (::syscall(kFutexWaitv, waiters.data(), waiters.size(), 0, &until, CLOCK_MONOTONIC) != -1) return;
  if (errno != ENOSYS && errno != EPERM) return;  // EPERM: a container's filter that does not know it
  can_wait_on_several.store(false, std::memory_order_relaxed);
  wait_on_word(word, value, at_most);
}

void wake_word(const std::atomic<std::uint32_t>& word) noexcept {
  if (Scheduler* const simulated = scheduler()) return simulated->wake(&word, false);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void wake_all_on_word(const std::atomic<std::uint32_t>& word) noexcept {
  if (Scheduler* const simulated = scheduler()) return simulated->wake(&word, true);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

int poll_for(std::span<pollfd> descriptors, Duration at_most) noexcept {
  if (Scheduler* const simulated = scheduler()) return simulated->poll(descriptors, after(at_most));
  const timespec limit = timespec_of(at_most);
  return ::ppoll(descriptors.data(), descriptors.size(), &limit, nullptr);
}

int epoll_for(int epoll, std::span<epoll_event> events, Duration at_most) noexcept {
  const auto count = static_cast<int>(events.size());
  if (Scheduler* const simulated = scheduler()) {
    pollfd any{epoll, POLLIN, 0};
    const int ready = simulated->poll({&any, 1}, after(at_most));
    return ready <= 0 ? ready : ::epoll_wait(epoll, events.data(), count, 0);
  }
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(std::max(at_most, Duration::zero())).count();
  return ::epoll_wait(epoll, events.data(), count,
                      static_cast<int>(std::min<std::int64_t>(milliseconds, std::numeric_limits<int>::max())));
}

}  // namespace core
}  // namespace col
