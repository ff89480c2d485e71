// A mutex whose lock() has a deadline, and notices meanwhile that the job has ended.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <col/job.hpp>

namespace col::group::adopt {

// Of the standard mutexes with a deadline, none is understood by every version of ThreadSanitizer.
class Turn {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !taken_; });
    taken_ = true;
  }

  // `what` says in words what it waits for. Throws what wait.check() throws.
  void lock(WaitContext& wait, std::string_view what) {
    wait.describe(std::string(what));
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, wait.slice(), [this] { return !taken_; })) {
      lock.unlock();  // check() may do anything
      wait.check();
      lock.lock();
    }
    taken_ = true;
  }

  bool try_lock() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(taken_, true);
  }

  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
    }
    changed_.notify_one();
  }

 private:
  std::mutex mutex_;  // guards taken_
  std::condition_variable changed_;
  bool taken_ = false;
};

}  // namespace col::group::adopt
