// How what is in flight in a group moves on.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/job/background.hpp"
#include "core/log.hpp"
#include "group/call/use.hpp"
#include "group/flight/in_flight.hpp"
#include "group/state.hpp"

namespace col {
namespace {

// How long destroying a group waits for what was dropped unfinished.
constexpr Duration kDrainTime = std::chrono::seconds(5);
// A wait that polls gives way to others this many times before it sleeps between looks.
constexpr int kYields = 200;
constexpr Duration kPollPause = std::chrono::microseconds(50);

// The group that this thread moves on without being in a call of it.
thread_local const Group::State* moved_on = nullptr;

void move_others_on() noexcept {
  if (core::Background::any()) group::InFlight::instance().move_on();
}

}  // namespace

void Group::State::pause(int turn) {
  if (turn < kYields)
    sched_yield();
  else
    std::this_thread::sleep_for(kPollPause);
}

group::Diagnosis::Describe Group::State::describer_of(const group::Pending& pending) const {
  return [this, &pending] { return pending.describe(rank(), size()); };
}

group::Diagnosis Group::State::diagnose(const group::Pending& pending) {
  return {parts_.surroundings, describer_of(pending)};
}

group::Watch& Group::State::watch_of(group::Pending& pending) {
  if (!pending.watch) pending.watch = std::make_unique<group::Watch>(parts_.surroundings, describer_of(pending));
  return *pending.watch;
}

// Breaks the group when what is in flight cannot end, for a rank that does not wait for it.
void Group::State::look_why(group::Pending& pending) {
  group::Watch& watch = watch_of(pending);
  try {
    watch.look();
  } catch (...) {
    fail_with_current(watch.diagnosis(), pending);
  }
}

// Whether the group is gone, and `pending` ended with it.
bool Group::State::outlived(group::Pending& pending) {
  if (!destroyed_ || is_forked_child()) return false;
  const std::lock_guard lock(mutex_);
  if (pending.error) throw *pending.error;
  return pending.ended;
}

// Moves on everything that is in flight. Throws what breaks the group.
void Group::State::progress_all() {
  for (std::size_t i = 0; i < active_.size();) {
    const PendingPtr pending = active_[i];
    try {
      if (!progress(*pending)) {
        ++i;
        continue;
      }
      finish(*pending);
    } catch (...) {
      group::Diagnosis diagnosis = diagnose(*pending);
      fail_with_current(diagnosis, *pending);
    }
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    if (parts_.record != nullptr && active_.empty()) parts_.record->end(name());
  }
}

// Moves on what goes over the host in a group for memory of GPUs. Throws what breaks the group, and leaves it to the
// caller to break it.
void Group::State::progress_hosted() {
  const auto by_host = [this](const Channel* channel) { return channel == nullptr || channel == hosted_->channel; };
  for (std::size_t i = 0; i < active_.size();) {
    const PendingPtr pending = active_[i];
    const bool is_hosted = pending->collective
                               ? by_host(pending->channel)
                               : std::all_of(pending->legs.begin(), pending->legs.end(),
                                             [&](const group::Leg& leg) { return by_host(leg.channel); });
    if (!is_hosted || !progress(*pending)) {
      ++i;
      continue;
    }
    finish(*pending);
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool Group::State::progress(group::Pending& pending) {
  using Phase = group::Pending::Phase;
  if (pending.phase == Phase::fetching) {
    if (!pending.staging->copied()) return false;
    pending.phase = Phase::running;
    execute(pending);
  }
  if (pending.phase == Phase::running) {
    if (!move_on(pending)) return false;
    if (!pending.staging) return true;
    pending.phase = Phase::returning;
    pending.staging->give_back(pending.stream);
  }
  return pending.staging->copied();
}

// The call itself, without the copies before and after.
bool Group::State::move_on(group::Pending& pending) {
  if (pending.collective && pending.decision->plan) return pending.executor.progress();
  if (pending.collective) {
    if (pending.ticket && pending.channel->test(*pending.ticket)) pending.ticket.reset();
    return !pending.ticket;
  }
  bool all = true;
  for (group::Leg& leg : pending.legs) all = progress(leg, pending) && all;
  return all;
}

void Group::State::finish(group::Pending& pending) {
  pending.ended = true;
  pending.staging.reset();
  // A user's function may hold what its owner wants back.
  if (pending.request.op.kind() == Op::Kind::user) pending.request.op = {};
  if (pending.collective && !pending.executed.empty()) {
    const std::string_view algorithm = *names_.insert(pending.decision->algorithm).first;
    for (const exec::Executed& executed : pending.executed)
      trace_.push_back({pending.sequence, pending.request.collective, algorithm, executed.round, executed.step});
    pending.executed.clear();
  }
  if (tracing_ && pending.collective && !pending.decision->plan)
    trace_.push_back({pending.sequence, pending.request.collective, *names_.insert(pending.decision->algorithm).first});
}

// Blocks until `pending` has ended, at most for its timeout.
void Group::State::await(group::Pending& pending) {
  progress_all();
  if (!pending.ended) {
    group::Diagnosis diagnosis = diagnose(pending);
    WaitContext wait(Deadline::after(pending.timeout), parts_.surroundings.control.get(), parts_.record, &diagnosis);
    try {
      await_until(pending, wait);
    } catch (...) {
      fail_with_current(diagnosis, pending);
    }
  }
  if (pending.error) throw *pending.error;
}

void Group::State::await_until(group::Pending& pending, WaitContext& wait) {
  for (int turn = 0; !pending.ended; ++turn) {
    block(pending, wait, turn);
    progress_all();
  }
}

// Waits a little for `pending`: in the channel when nothing else needs this rank's hand meanwhile, else by looking
// again and again. Peers may wait for the other plans in flight first.
void Group::State::block(group::Pending& pending, WaitContext& wait, int turn) {
  if (in_parts_ > 0) {  // which are copied meanwhile, and the channel does not wait for that
    wait.check();
    return pause(idle_turns_++);
  }
  if (hosted_ && (active_.size() > 1 || pending.legs.size() > 1)) {  // two channels, and both may be needed
    wait.check();
    return pause(turn);
  }
  const auto plans =
      std::count_if(active_.begin(), active_.end(), [](const auto& p) { return p->collective && p->decision->plan; });
  if (pending.ticket && plans == 0) {
    pending.channel->wait(*pending.ticket, wait);
    pending.ticket.reset();
    return;
  }
  const bool runs = pending.phase == group::Pending::Phase::running;
  if (pending.collective && pending.decision->plan && plans == 1 && runs) {
    wait.waiting(pending.executor.step(), pending.executor.peer());
    return pending.executor.wait(wait);
  }
  const auto leg =
      std::find_if(pending.legs.begin(), pending.legs.end(), [](const group::Leg& l) { return l.posted && !l.done; });
  if (plans == 0 && leg != pending.legs.end()) {
    wait.waiting(-1, leg->peer);
    return complete(*leg, pending, leg->channel->wait(leg->ticket, wait));
  }
  wait.check();
  pause(turn);
}

void Group::State::await_copies(group::Staging& staging, WaitContext& wait) {
  wait.describe("the copies between the GPU and the host");
  for (int turn = 0; !staging.copied(); ++turn) {
    wait.check();
    pause(turn);
  }
}

// Blocks until every collective in flight has ended, each for its own timeout.
void Group::State::await_collectives() {
  for (;;) {
    progress_all();
    const auto plan = std::find_if(active_.begin(), active_.end(), [](const auto& p) { return p->collective; });
    if (plan == active_.end()) return;
    const PendingPtr pending = *plan;
    await(*pending);
  }
}

// Ends what was started and dropped, for a while. Returns the mismatch that keeps it from ending.
std::optional<Error> Group::State::drain() noexcept {
  try {
    const Deadline deadline = Deadline::after(std::min(parts_.timeout, kDrainTime));
    for (int turn = 0; !broken_ && !active_.empty(); ++turn) {
      progress_all();
      if (active_.empty() || deadline.expired()) break;
      look_why(*active_.front());
      move_others_on();
      pause(turn);
    }
  } catch (const Error& e) {
    if (e.code() == ErrorCode::mismatch) return e;
    core::log::warn("group '{}': destroyed with operations in flight: {}", name(), e.what());
  } catch (const std::exception& e) {
    core::log::warn("group '{}': destroyed with operations in flight: {}", name(), e.what());
  }
  if (active_.empty()) return std::nullopt;
  core::log::warn("group '{}': destroyed with {} operations in flight, the first of them {}; wait for them before",
                  name(), active_.size(), active_.front()->name);
  break_with(own_error(ErrorCode::aborted, "the group was destroyed with operations in flight"));
  return std::nullopt;
}

bool Group::State::wait(group::Pending& pending, Duration budget) {
  if (outlived(pending)) return true;
  const Use use(*this);
  if (budget <= Duration::zero()) {
    if (!pending.ended) await(pending);
  } else if (!pending.ended) {
    group::Watch& watch = watch_of(pending);
    // Its deadline is later than the budget, so that the wait ends without breaking anything.
    budget = std::min(budget, Deadline::kMaxBudget);
    WaitContext wait(Deadline::after(budget + pending.timeout), parts_.surroundings.control.get(), parts_.record,
                     &watch.diagnosis());
    const Deadline until = Deadline::after(budget);
    try {
      for (int turn = 0;; ++turn) {
        progress_all();
        if (pending.ended) break;
        if (until.expired()) return false;
        watch.look();
        wait.check();
        pause(turn);
      }
    } catch (...) {
      fail_with_current(watch.diagnosis(), pending);
    }
  }
  if (pending.error) throw *pending.error;
  return true;
}

bool Group::State::test(group::Pending& pending) {
  if (outlived(pending)) return true;
  const Use use(*this);
  if (!pending.ended) progress_all();
  if (!pending.ended) {
    if (parts_.record != nullptr) parts_.record->touch();  // a rank that polls again and again is not stuck
    look_why(pending);
    move_others_on();
  }
  if (pending.error) throw *pending.error;
  return pending.ended;
}

bool Group::State::is_moving_one_on() noexcept {
  return moved_on != nullptr;
}

// In a function of the user's that the group runs: any wait of the process may run it, with the group's lock held.
void Group::State::throw_in_use() const {
  throw own_error(
      ErrorCode::invalid_argument,
      "the group is in use by another thread; give each thread a group of its own, and let a reduction of yours "
      "use none of the groups that run it");
}

bool Group::State::is_inside() const noexcept {
  return moved_on == this;
}

void Group::State::require_not_inside() const {
  if (!is_inside()) return;
  throw own_error(
      ErrorCode::invalid_argument,
      "called from a function that this group runs, such as a reduction of yours; that must not use the group");
}

// Called at the begin and the end of a call: operations in flight are moved forward by their own waits, or else by the
// waits of all others. Requires: mutex_ is held.
void Group::State::leave_to_others(bool leaves) noexcept {
  leaves = leaves && !active_.empty() && !destroyed_;
  if (leaves == is_left_to_others_) return;
  try {
    if (leaves)
      group::InFlight::instance().add(weak_from_this());
    else
      group::InFlight::instance().remove();
    is_left_to_others_ = leaves;
  } catch (const std::bad_alloc&) {  // it moves on in calls of its own alone
  }
}

bool Group::State::progress_in_background() {
  // Before the lock, which this thread may hold if the group is in use. acquire: as in Use.
  if (is_inside() || in_use_.load(std::memory_order_acquire)) return true;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  if (destroyed_ || is_forked_child()) return false;
  if (holds_back_messages()) return true;
  const auto* const outer = std::exchange(moved_on, this);
  try {
    progress_all();
    const auto collective = std::find_if(active_.begin(), active_.end(), [](const auto& p) { return p->collective; });
    if (collective != active_.end()) look_why(**collective);
  } catch (const std::exception&) {  // kept for the thread that waits
  }
  moved_on = outer;
  if (active_.empty()) leave_to_others(false);
  return !active_.empty();
}

// For a look at an operation. Waits for others that move the group on, which takes moments, but not for a call.
std::unique_lock<std::mutex> Group::State::lock_to_look() {
  if (is_inside()) return {};                                   // this thread has it
  if (in_use_.load(std::memory_order_acquire)) throw_in_use();  // pairs with Use
  return std::unique_lock(mutex_);
}

int Group::State::source_of(const group::Pending& pending) {
  if (is_forked_child()) return -1;  // the lock may be a thread's that is not here
  const auto lock = lock_to_look();
  return pending.ended && !pending.error ? pending.source : -1;
}

std::optional<Error> Group::State::error_of(const group::Pending& pending) {
  if (is_forked_child()) return std::nullopt;
  const auto lock = lock_to_look();
  return pending.ended ? pending.error : std::nullopt;
}

}  // namespace col
