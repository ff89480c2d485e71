#include "group/flight/access.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/fast_tls.hpp"
#include "group/flight/unattended.hpp"

namespace col::group {
namespace {

// A thread that waits for a gate yields this often, and then sleeps between its looks.
constexpr int kGateYields = 100;
constexpr auto kGatePause = std::chrono::microseconds(50);

// The group that this thread moves on without being in a call of it.
COL_FAST_TLS thread_local const Access* moved_on = nullptr;

// Between two looks at a gate.
void give_way(int turn) noexcept {
  if (turn < kGateYields)
    core::yield();
  else
    core::sleep_for(kGatePause);
}

}  // namespace

// ---- Gate

// Says first that it comes, so that no other thread begins to move the group on.
bool Gate::enter_slowly() noexcept {
  if ((state_.fetch_or(kUsed, std::memory_order_acquire) & kUsed) != 0) return false;
  for (int turn = 0; (state_.load(std::memory_order_acquire) & kMoved) != 0; ++turn) give_way(turn);
  return true;
}

void Gate::lock() noexcept {
  for (int turn = 0; !try_lock(); ++turn) give_way(turn);
}

// ---- Turns

bool Turns::enter(WaitContext& wait, const Deadline& until) {
  const auto self = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  if (entered_ > 0 && queue_.front() == self) {
    ++entered_;
    return true;
  }
  queue_.push_back(self);
  // The last of its places: a function of the user's that a check runs may wait for a turn inside of this wait.
  const auto give_up = [&] {
    queue_.erase(std::prev(std::find(queue_.rbegin(), queue_.rend(), self).base()));
    changed_.notify_all();
  };
  try {
    while (queue_.front() != self) {
      if (until.expired()) {
        give_up();
        return false;
      }
      changed_.wait_for(lock, std::min(wait.slice(), until.remaining()));
      lock.unlock();  // for what a check calls
      wait.check();
      lock.lock();
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    give_up();
    throw;
  }
  entered_ = 1;
  return true;
}

void Turns::leave() noexcept {
  const std::lock_guard lock(mutex_);
  if (--entered_ > 0) return;
  queue_.pop_front();
  changed_.notify_all();
}

// ---- Access

void Access::throw_unusable() const {
  if (core_.is_forked_child())
    throw core_.own_error(
        ErrorCode::not_initialized,
        "this process was forked after the group was made, and is no member of it; make groups after fork()");
  if (core_.over()) throw *core_.over();
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
      "the group is in use by another thread; give each thread a group of its own, or set ContextSpec::serialize, and "
      "let a reduction of yours use none of the groups that run it");
}

void Turn::require_may_wait(const Access& access) {
  if (!must_not_wait) return;
  throw access.core_.own_error(
      ErrorCode::invalid_argument,
      "a function that was given to Work::then() must not wait: it may start operations, and give another function "
      "to their then()");
}

void Access::enter(std::optional<Duration> timeout) {
  require_usable();
  require_not_inside();
  if (timeout) Turn::require_may_wait(*this);
  if (core_.settings().serialize) begin_turn(timeout.value_or(core_.timeout()));
  if (!gate_.enter()) refuse();
  if (!is_destroyed()) return;  // in between, by another thread
  leave();
  throw_unusable();
}

void Access::refuse() {
  end_turn();
  require_usable();  // with turns, it is in use by who destroys it, or by this thread
  throw_in_use();
}

void Access::end_turn() noexcept {
  if (core_.settings().serialize) turns_.leave();
}

void Access::begin_turn(Duration timeout) {
  if (!core_.settings().serialize) return;
  wait_for_turn(Deadline::after(timeout), Deadline::after(Deadline::kMaxBudget));
}

bool Access::begin_turn_within(Duration budget) {
  if (!core_.settings().serialize) return true;
  // Its deadline is later than the budget, so that the wait ends without an error.
  return wait_for_turn(Deadline::after(std::min(budget, Deadline::kMaxBudget) + core_.timeout()),
                       Deadline::after(budget));
}

bool Access::wait_for_turn(const Deadline& deadline, const Deadline& until) {
  // Without the rank's record, which tells of the call that this one waits for.
  WaitContext wait(deadline, core_.surroundings().control.get(), nullptr, nullptr, &core_.settings().interrupt);
  wait.describe("another thread's call on the group");
  try {
    return turns_.enter(wait, until);
  } catch (const Error& error) {
    if (WaitContext::take_interruption() != nullptr) throw;
    throw core_.own_error(error.code(), error.message());
  } catch (...) {
    WaitContext::take_interruption();
    throw;
  }
}

void Access::change_leaving(bool leaves) noexcept {
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
  if (is_inside()) return true;
  const std::unique_lock lock(gate_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  if (core_.is_forked_child()) return false;
  if (is_destroyed()) {
    // Its Works would never end: nobody moves them on any more.
    if (is_left_over_ && !flight_.active().empty())
      core_.break_with(core_.own_error(ErrorCode::aborted, "the group was destroyed with operations in flight"));
    // The call that was on its way out as the group was destroyed may have left it to the others.
    if (flight_.active().empty()) leave_to_others(false);
    return false;
  }
  const auto& active = flight_.active();
  const auto* const outer = std::exchange(moved_on, this);
  try {
    flight_.progress_all(Flight::kLook);
    const auto collective = std::find_if(active.begin(), active.end(), [](const auto& p) { return p->collective; });
    if (collective != active.end()) flight_.look_why(**collective);
  } catch (...) {  // kept for the thread that waits
  }
  moved_on = outer;
  if (active.empty()) leave_to_others(false);
  return !active.empty();
}

bool Access::hand_over() {
  if (!flight_.holds_back()) return true;
  const auto lock = lock_for_moments();
  if (!lock) return false;
  if (!is_destroyed() && !core_.is_forked_child()) flight_.hand_over();
  return true;
}

template <class Act>
void Access::move_on_by(std::unique_lock<Gate> lock, const Act& act) noexcept {
  if (!lock || is_destroyed() || core_.is_forked_child()) return;
  const auto* const outer = std::exchange(moved_on, this);
  try {
    act();
  } catch (...) {  // kept for those who ask
  }
  moved_on = outer;
  if (flight_.active().empty()) leave_to_others(false);
}

void Access::time_out(Pending& pending) noexcept {
  move_on_by(try_lock(), [&] {
    if (!pending.has_ended()) flight_.time_out(pending);
  });
}

void Access::say_whom_it_awaits(Pending& pending, Duration waited) noexcept {
  move_on_by(lock_for_moments(), [&] {
    if (pending.has_ended()) return;
    Diagnosis& diagnosis = pending.watch_in(core_.surroundings()).diagnosis();
    diagnosis.tell_others();
    diagnosis.say_whom_it_awaits(waited);
  });
}

// What a broken group has said explains why.
void Access::withdraw(Pending& pending) noexcept {
  move_on_by(lock_for_moments(), [&] {
    if (core_.broken()) return;
    if (pending.watch) pending.watch->diagnosis().withdraw();
    if (RankRecord* const record = core_.record()) record->held_up_by(-1);
  });
}

std::unique_lock<Gate> Access::lock_unless_used() {
  std::unique_lock lock(gate_, std::defer_lock);
  for (;; core::yield()) {
    if (gate_.is_used()) return {};
    if (lock.try_lock()) return lock;  // only who moves the group on holds it otherwise, for moments
  }
}

std::unique_lock<Gate> Access::try_lock() {
  if (is_inside()) return {};
  return std::unique_lock(gate_, std::try_to_lock);
}

std::unique_lock<Gate> Access::lock_if_destroyed() {
  if (!is_destroyed() || core_.is_forked_child()) return {};
  return std::unique_lock(gate_);
}

}  // namespace col::group
