// Locks, conditions and threads of which a simulated job decides who goes on. Outside of one they are those of the
// standard library.
//
// A lock over which nothing waits (no wait of clock.hpp, no Mutex, no condition, no call of a user's function) may be a
// std::mutex: of a simulated job's threads one runs at a time, so it is free whenever another thread runs.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <col/types.hpp>

#include "core/clock/clock.hpp"

namespace col::core {

class Mutex {
 public:
  void lock() {
    may_yield();
    if (Scheduler* const simulated = scheduler())
      while (!mutex_.try_lock()) simulated->block(this, Clock::time_point::max());
    else
      mutex_.lock();
  }
  bool try_lock() {
    may_yield();
    return mutex_.try_lock();
  }
  void unlock() {
    mutex_.unlock();
    if (Scheduler* const simulated = scheduler()) simulated->wake(this, false);
  }

 private:
  friend class Condition;
  std::mutex mutex_;
};

// A std::condition_variable with a Mutex. It may wake for no reason.
class Condition {
 public:
  void notify_one() noexcept { notify(false); }
  void notify_all() noexcept { notify(true); }

  void wait(std::unique_lock<Mutex>& lock) {
    if (Scheduler* const simulated = scheduler()) return block(*simulated, lock, Clock::time_point::max());
    std::unique_lock inner(lock.mutex()->mutex_, std::adopt_lock);
    condition_.wait(inner);
    inner.release();
  }
  template <class Ready>
  void wait(std::unique_lock<Mutex>& lock, Ready ready) {
    while (!ready()) wait(lock);
  }

  void wait_until(std::unique_lock<Mutex>& lock, Clock::time_point time) {
    if (Scheduler* const simulated = scheduler()) return block(*simulated, lock, time);
    std::unique_lock inner(lock.mutex()->mutex_, std::adopt_lock);
    condition_.wait_until(inner, time);
    inner.release();
  }
  // Returns what `ready` says at last.
  template <class Ready>
  bool wait_until(std::unique_lock<Mutex>& lock, Clock::time_point time, Ready ready) {
    while (!ready()) {
      if (Clock::now() >= time) return ready();
      wait_until(lock, time);
    }
    return true;
  }

  // Without an end for the longest budget and more.
  void wait_for(std::unique_lock<Mutex>& lock, Duration at_most) { wait_until(lock, end_of(at_most)); }
  template <class Ready>
  bool wait_for(std::unique_lock<Mutex>& lock, Duration at_most, Ready ready) {
    return wait_until(lock, end_of(at_most), std::move(ready));
  }

 private:
  static Clock::time_point end_of(Duration at_most) noexcept {
    return at_most < Deadline::kMaxBudget ? Clock::now() + at_most : Clock::time_point::max();
  }
  void notify(bool all) noexcept {
    if (Scheduler* const simulated = scheduler()) return simulated->wake(this, all);
    if (all)
      condition_.notify_all();
    else
      condition_.notify_one();
  }
  // Between the unlock and the block, nobody runs who could notify.
  void block(Scheduler& simulated, std::unique_lock<Mutex>& lock, Clock::time_point until) {
    lock.unlock();
    simulated.block(this, until);
    lock.lock();
  }

  std::condition_variable condition_;
};

// A thread of the process, or in a simulated job of the rank. As with std::thread, the program ends where one is
// destroyed, or replaced, that was neither joined nor detached.
class Thread {
 public:
  Thread() = default;
  template <class Body>
  explicit Thread(Body body) {
    if (Scheduler* const simulated = scheduler())
      number_ = simulated->start_thread(std::move(body));
    else
      thread_ = std::thread(std::move(body));
  }
  Thread(Thread&& other) noexcept : thread_(std::move(other.thread_)), number_(std::exchange(other.number_, kNone)) {}
  Thread& operator=(Thread&& other) noexcept {
    if (number_ != kNone) std::terminate();
    thread_ = std::move(other.thread_);
    number_ = std::exchange(other.number_, kNone);
    return *this;
  }

  ~Thread() {
    if (number_ != kNone) std::terminate();
  }

  bool joinable() const noexcept { return thread_.joinable() || number_ != kNone; }
  void join() {
    if (number_ != kNone)
      scheduler()->join_thread(std::exchange(number_, kNone));
    else
      thread_.join();
  }
  void detach() {
    if (std::exchange(number_, kNone) == kNone) thread_.detach();
  }

 private:
  static constexpr int kNone = -1;
  std::thread thread_;
  int number_ = kNone;  // in a simulated job
};

}  // namespace col::core
