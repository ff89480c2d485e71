// A function that runs when an operation has ended: Work::then().
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include <col/job.hpp>

#include "core/clock/lock.hpp"
#include "group/flight/access.hpp"
#include "group/flight/pending.hpp"

namespace col::group {

class Continuation {
 public:
  using Function = std::function<void(const std::optional<Error>&)>;

  // What has to end first: an operation, with its group; another continuation; or nothing.
  struct Before {
    PendingPtr pending = {};
    std::shared_ptr<Access> access = {};  // shared: the group is moved on until the operation has ended
    std::shared_ptr<Continuation> continuation = {};

    bool has_ended() const;
    std::optional<Error> error() const;  // Requires: it has ended
  };

  // A wait for a message begins here: see Access::hand_over(). An operation that has not ended after `timeout` breaks
  // its group with a timeout.
  Continuation(Before before, Function function, Duration timeout);
  Continuation(const Continuation&) = delete;
  Continuation& operator=(const Continuation&) = delete;

  // For the progress thread. Returns whether it has ended now. It runs the function if what comes before has ended, and
  // moves that on before, unless its group is `moved`, the one that was moved on last. Does not block, except for what
  // the function does.
  bool move_on(const Access*& moved) noexcept;

  // Any thread may call the rest.
  bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }  // pairs with run()
  // What the function has thrown. Requires: it has ended.
  const std::optional<Error>& error() const { return error_; }
  Duration timeout() const { return timeout_; }
  // The operation that has to end first, also of one before another; none where there is none, or it has ended.
  Before operation() const;
  // Blocks until it has ended. Throws what wait.check() throws.
  void await(WaitContext& wait);
  // The same for `budget` at most; returns whether it has ended.
  bool await_for(WaitContext& wait, Duration budget);

 private:
  void run() noexcept;
  void hand_over();

  Before before_;
  Function function_;
  const Duration timeout_;
  const Deadline deadline_;
  bool is_handed_over_ = false;  // what had been posted when it was made, or a little later
  mutable core::Mutex mutex_;
  Before operation_;  // guarded by mutex_
  core::Condition changed_;
  std::optional<Error> error_;  // written before the next one
  std::atomic<bool> ended_{false};
};

}  // namespace col::group
