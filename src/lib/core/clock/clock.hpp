// Time, and the ways to let it pass. Nothing else in the library reads a clock or sleeps, but what measures
// (tests/unit/time_passed_in has the list), so that a simulated job decides what time it is and who goes on.
#pragma once

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>

#include <col/job.hpp>
#include <col/types.hpp>

#include "core/clock/scheduler.hpp"
#include "core/export/module_export.hpp"

namespace col::core {

// The monotonic clock, which all processes of a host share.
using Clock = Deadline::Clock;

// The clock on the wall: for people and for files, never for a wait.
COL_MODULE_EXPORT std::chrono::system_clock::time_point wall_now() noexcept;

// Clock, in nanoseconds since its beginning, for words that processes share.
inline std::uint64_t clock_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}
// The same to a tick of the kernel (1 to 10 ms), in a quarter of the time.
inline std::uint64_t coarse_clock_ns() noexcept {
  if (scheduler() != nullptr) [[unlikely]]
    return clock_ns();
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// Whole: a signal does not shorten it.
COL_MODULE_EXPORT void sleep_until(Clock::time_point time) noexcept;
COL_MODULE_EXPORT void sleep_for(Duration length) noexcept;

// In a simulated job, another thread may run: stands before a lock is taken that may be held over a wait.
inline void may_yield() noexcept {
  if (Scheduler* const simulated = scheduler()) [[unlikely]]
    simulated->may_yield();
}
inline void yield() noexcept {
  if (Scheduler* const simulated = scheduler())
    simulated->yield();
  else
    ::sched_yield();
}

// Sleeps while the word, which processes may share, has this value: until wake_word(), until `at_most` has passed, or
// for no reason (a signal). The caller looks again.
COL_MODULE_EXPORT void wait_on_word(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                                    Duration at_most) noexcept;
// The same for two words: until either is woken, or has another value. The kernel may be too old (before 5.16), or not
// allowed to; then only the first word counts, so `at_most` says how late the other one may be noticed.
struct WordValue {
  const std::atomic<std::uint32_t>* word = nullptr;  // null: none
  std::uint32_t value = 0;
};
COL_MODULE_EXPORT void wait_on_words(const std::atomic<std::uint32_t>& word, std::uint32_t value, WordValue other,
                                     Duration at_most) noexcept;
// Wakes one of them. The caller has changed the word.
COL_MODULE_EXPORT void wake_word(const std::atomic<std::uint32_t>& word) noexcept;
COL_MODULE_EXPORT void wake_all_on_word(const std::atomic<std::uint32_t>& word) noexcept;

// poll(2), to the nanosecond: how many are ready, 0 after `at_most`, or -1 with errno (EINTR after a signal).
COL_MODULE_EXPORT int poll_for(std::span<pollfd> descriptors, Duration at_most) noexcept;
// epoll_wait(2) likewise, to the millisecond above.
COL_MODULE_EXPORT int epoll_for(int epoll, std::span<epoll_event> events, Duration at_most) noexcept;

}  // namespace col::core
