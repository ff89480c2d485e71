// Handles of operations that have been started.
#include <algorithm>
#include <utility>

#include "group/state.hpp"

namespace col {

// Whether the group is gone, and the operation ended with it.
bool Work::Handle::outlived_group() const {
  const auto lock = state->access().lock_if_destroyed();
  if (!lock) return false;
  if (pending->error) throw *pending->error;
  return pending->ended;
}

bool Work::Handle::wait(Duration budget) {
  if (outlived_group()) return true;
  const group::Use use(state->access());
  group::Flight& flight = state->flight();
  if (budget <= Duration::zero()) {
    if (!pending->ended) flight.await(*pending);
  } else if (!pending->ended) {
    group::Core& core = state->core();
    group::Watch& watch = pending->watch_in(core.surroundings());
    // Its deadline is later than the budget, so that the wait ends without breaking anything.
    budget = std::min(budget, Deadline::kMaxBudget);
    WaitContext wait = core.waiting(Deadline::after(budget + pending->timeout), &watch.diagnosis());
    const Deadline until = Deadline::after(budget);
    try {
      for (int turn = 0;; ++turn) {
        flight.progress_all();
        if (pending->ended) break;
        if (until.expired()) return false;
        watch.look();
        wait.check();
        group::Flight::pause(turn);
      }
    } catch (...) {
      core.fail_with_current(watch.diagnosis(), pending->name);
    }
  }
  if (pending->error) throw *pending->error;
  return true;
}

bool Work::Handle::test() {
  if (outlived_group()) return true;
  const group::Use use(state->access());
  group::Flight& flight = state->flight();
  if (!pending->ended) flight.progress_all();
  if (!pending->ended) {
    RankRecord* const record = state->core().record();
    if (record != nullptr) record->touch();  // a rank that polls again and again is not stuck
    flight.look_why(*pending);
    group::move_others_on();
  }
  if (pending->error) throw *pending->error;
  return pending->ended;
}

Work::Work(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}

void Work::wait() {
  if (handle_) handle_->wait(Duration::zero());
}

bool Work::wait_for(Duration budget) {
  if (!handle_) return true;
  return budget <= Duration::zero() ? test() : handle_->wait(budget);
}

bool Work::test() {
  return !handle_ || handle_->test();
}

// In a forked child, the lock of both may be a thread's that is not here.
std::optional<Error> Work::error() const {
  if (!handle_ || handle_->state->core().is_forked_child()) return std::nullopt;
  const auto lock = handle_->state->access().lock_to_look();
  return handle_->pending->ended ? handle_->pending->error : std::nullopt;
}

int Work::source() const {
  if (!handle_ || handle_->state->core().is_forked_child()) return -1;
  const auto lock = handle_->state->access().lock_to_look();
  const group::Pending& pending = *handle_->pending;
  return pending.ended && !pending.error ? pending.source : -1;
}

}  // namespace col
