#include "group/flight/access.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "group/flight/unattended.hpp"

namespace col::group {
namespace {

// The group that this thread moves on without being in a call of it.
thread_local const Access* moved_on = nullptr;

}  // namespace

void Access::throw_unusable() const {
  if (core_.is_forked_child())
    throw core_.own_error(
        ErrorCode::not_initialized,
        "this process was forked after the group was made, and is no member of it; make groups after fork()");
  throw core_.own_error(ErrorCode::not_initialized, "the group was destroyed; init_collective_group makes it anew");
}

bool Access::is_moving_one_on() noexcept {
  return moved_on != nullptr;
}

bool Access::is_inside() const noexcept {
  return moved_on == this;
}

void Access::require_not_inside() const {
  if (!is_inside()) return;
  throw core_.own_error(
      ErrorCode::invalid_argument,
      "called from a function that this group runs, such as a reduction of yours; that must not use the group");
}

// In a function of the user's that the group runs: any wait of the process may run it, with the group's lock held.
void Access::throw_in_use() const {
  throw core_.own_error(
      ErrorCode::invalid_argument,
      "the group is in use by another thread; give each thread a group of its own, and let a reduction of yours "
      "use none of the groups that run it");
}

// Called at the begin and the end of a call: operations in flight are moved forward by their own waits, or else by the
// waits of all others. Requires: mutex_ is held.
void Access::leave_to_others(bool leaves) noexcept {
  leaves = leaves && !flight_.active().empty() && !destroyed_;
  if (leaves == is_left_to_others_) return;
  try {
    if (leaves)
      Unattended::instance().add(self_);
    else
      Unattended::instance().remove();
    is_left_to_others_ = leaves;
    if (leaves && core_.settings().progress_thread) ProgressThread::instance().watch(self_);
  } catch (const std::bad_alloc&) {  // it moves on in calls of its own alone
  }
}

bool Access::move_on_unattended() {
  // Before the lock, which this thread may hold if the group is in use. acquire: as in Use.
  if (is_inside() || in_use_.load(std::memory_order_acquire)) return true;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  if (destroyed_ || core_.is_forked_child()) return false;
  if (flight_.holds_back_messages()) return true;
  const auto& active = flight_.active();
  const auto* const outer = std::exchange(moved_on, this);
  try {
    flight_.progress_all();
    const auto collective = std::find_if(active.begin(), active.end(), [](const auto& p) { return p->collective; });
    if (collective != active.end()) flight_.look_why(**collective);
  } catch (const std::exception&) {  // kept for the thread that waits
  }
  moved_on = outer;
  if (active.empty()) leave_to_others(false);
  return !active.empty();
}

std::unique_lock<std::mutex> Access::lock_to_look() {
  if (is_inside()) return {};                                   // this thread has it
  if (in_use_.load(std::memory_order_acquire)) throw_in_use();  // pairs with Use
  return std::unique_lock(mutex_);
}

std::unique_lock<std::mutex> Access::lock_unless_used() {
  std::unique_lock lock(mutex_, std::defer_lock);
  for (;; std::this_thread::yield()) {
    if (in_use_.load(std::memory_order_acquire)) return {};
    if (lock.try_lock()) return lock;  // only who moves the group on holds it without that flag, for moments
  }
}

std::unique_lock<std::mutex> Access::try_lock() {
  // acquire pairs with Use. The lock may be this thread's.
  if (is_inside() || in_use_.load(std::memory_order_acquire)) return {};
  return std::unique_lock(mutex_, std::try_to_lock);
}

std::unique_lock<std::mutex> Access::lock_if_destroyed() {
  if (!destroyed_ || core_.is_forked_child()) return {};
  return std::unique_lock(mutex_);
}

}  // namespace col::group
