#include "group/flight/continuation.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

namespace col::group {
namespace {

// What a function of the user's has thrown, in a catch block.
Error thrown_by_user() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorCode::internal,
                 fmt::format("the function given to Work::then() threw '{}'; catch it there", error.what()));
  } catch (...) {
    return Error(ErrorCode::internal,
                 "the function given to Work::then() threw something that is no std::exception; catch it there");
  }
}

}  // namespace

bool Continuation::Before::has_ended() const {
  return pending ? pending->has_ended() : !continuation || continuation->has_ended();
}

std::optional<Error> Continuation::Before::error() const {
  if (pending) return pending->error;
  return continuation ? continuation->error() : std::nullopt;
}

Continuation::Continuation(Before before, Function function, Duration timeout)
    : before_(std::move(before)),
      function_(std::move(function)),
      timeout_(timeout),
      deadline_(Deadline::after(timeout)),
      operation_(before_.continuation ? before_.continuation->operation() : before_) {
  hand_over();
}

// Once: what is posted later is for later waits. NCCL does one thing after another, so that a send which goes alone
// holds up the receive that its peer waits for first.
void Continuation::hand_over() {
  if (is_handed_over_ || before_.has_ended() || !before_.access || before_.pending->collective) return;
  is_handed_over_ = before_.access->hand_over();
}

bool Continuation::move_on(const Access*& moved) noexcept {
  if (!before_.has_ended() && before_.access) {
    hand_over();
    if (moved != before_.access.get()) {
      moved = before_.access.get();
      before_.access->move_on_unattended();
    }
    if (!before_.has_ended() && deadline_.expired()) before_.access->time_out(*before_.pending);
  }
  if (!before_.has_ended()) return false;
  run();
  return true;
}

void Continuation::run() noexcept {
  try {
    function_(before_.error());
  } catch (...) {
    error_ = thrown_by_user();
  }
  function_ = nullptr;  // all three may hold what their owner wants back
  before_ = {};
  Before operation;
  {
    const std::lock_guard lock(mutex_);
    std::swap(operation, operation_);
  }
  operation = {};
  {
    const std::lock_guard lock(mutex_);
    ended_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

Continuation::Before Continuation::operation() const {
  const std::lock_guard lock(mutex_);
  return operation_;
}

void Continuation::await(WaitContext& wait) {
  wait.describe("the function given to Work::then()");
  std::unique_lock lock(mutex_);
  while (!has_ended()) {
    changed_.wait_for(lock, wait.slice());
    lock.unlock();  // for what a check calls
    wait.check();
    lock.lock();
  }
}

bool Continuation::await_for(WaitContext& wait, Duration budget) {
  const Deadline until = Deadline::after(budget);
  std::unique_lock lock(mutex_);
  while (!has_ended() && !until.expired()) {
    changed_.wait_for(lock, std::min(wait.slice(), until.remaining()));
    lock.unlock();
    wait.check();
    lock.lock();
  }
  return has_ended();
}

}  // namespace col::group
