// Handles of operations that have been started.
#include <algorithm>
#include <chrono>
#include <functional>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "core/duration.hpp"
#include "group/diagnosis/world_ranks.hpp"
#include "group/flight/unattended.hpp"
#include "group/state.hpp"

namespace col {
namespace {

// Of what follows nothing that has a timeout.
constexpr Duration kDefaultThenTimeout = std::chrono::minutes(5);

// Watches a wait that tests several operations: has functions for when it lasts, and for its end.
class LongWait final : public WaitObserver {
 public:
  LongWait(std::function<void(Duration waited)> lasts, std::function<void()> ends)
      : lasts_(std::move(lasts)), ends_(std::move(ends)) {}
  ~LongWait() {
    if (has_lasted_) ends_();
  }
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  bool on_slow(Duration waited) override {
    has_lasted_ = true;
    try {
      lasts_(waited);
    } catch (const Error&) {  // the next test says what is wrong
    }
    return false;
  }
  void on_timeout(Duration /*budget*/) override {}

 private:
  const std::function<void(Duration waited)> lasts_;
  const std::function<void()> ends_;
  bool has_lasted_ = false;
};

// For a wait that breaks no group: nobody else takes what an interrupt has thrown, and it must not pass for the cause
// of a later error.
template <class Call>
auto without_trace(const Call& call) {
  try {
    return call();
  } catch (...) {
    WaitContext::take_interruption();
    throw;
  }
}

}  // namespace

bool Work::Handle::has_ended() const {
  return after ? after->has_ended() : pending->has_ended();
}

Duration Work::Handle::timeout() const {
  return after ? after->timeout() : pending->timeout;
}

WaitContext Work::Handle::waiting(Deadline deadline, WaitObserver* observer) const {
  return state ? state->core().waiting(deadline, observer) : WaitContext(deadline, nullptr, nullptr, observer);
}

// Nothing is locked: an operation that has ended stays as it is.
std::optional<Error> Work::Handle::error() const {
  if (!has_ended()) return std::nullopt;
  return after ? after->error() : pending->error;
}

bool Work::Handle::throw_or_tell() const {
  if (!has_ended()) return false;
  if (const auto failure = error()) {
    if (state) state->note_told(*failure);
    throw *failure;
  }
  return true;
}

// Whether the group is gone, and the operation ended with it.
bool Work::Handle::outlived_group() const {
  const auto lock = state->access().lock_if_destroyed();
  return lock && throw_or_tell();
}

// Nobody else ends the scope that holds it back. Requires: this thread has a Use.
void Work::Handle::require_started() const {
  if (!pending->is_collected) return;
  state->core().require_no_lost_scope();
  throw state->core().own_error(
      ErrorCode::invalid_argument,
      fmt::format("this {} is part of a scope of coalesce() that has not ended; end it before", pending->name));
}

// For calls that need no Use else.
void Work::Handle::refuse_collected() const {
  if (!pending->is_collected) return;
  const group::Use use(state->access());
  require_started();
}

bool Work::Handle::wait(Duration budget) {
  if (after) return await_function(budget);
  if (throw_or_tell() || outlived_group()) return true;
  if (budget > Duration::zero()) return wait_within(std::min(budget, Deadline::kMaxBudget));
  const group::Use use(state->access(), pending->timeout);
  require_started();
  state->flight().outlast_capture(pending->name, pending->timeout, pending.get());
  state->flight().await(*pending);
  return throw_or_tell();
}

bool Work::Handle::wait_within(Duration budget) {
  const Deadline until = Deadline::after(budget);
  const group::BriefTurn own_turn(state->access(), budget);
  if (!own_turn) return throw_or_tell();  // the call of another thread moves it on
  const group::Use use(state->access(), pending->timeout);
  require_started();
  if (!pending->has_ended()) {
    group::Flight& flight = state->flight();
    group::Core& core = state->core();
    group::Watch& watch = pending->watch_in(core.surroundings());
    // Its deadline is later than the budget, so that the wait ends without breaking anything.
    WaitContext wait = core.waiting(Deadline::after(budget + pending->timeout), &watch.diagnosis());
    try {
      for (int turn = 0;; ++turn) {
        flight.progress_all();
        if (pending->has_ended()) break;
        if (until.expired()) return false;
        if (turn == 0) flight.recording().on_brief_wait(*pending);
        watch.look();
        wait.check();
        group::Flight::pause(turn);
      }
    } catch (...) {
      core.fail_with_current(watch.diagnosis(), pending->name);
    }
  }
  return throw_or_tell();
}

// For a function that was given to then(). The progress thread does the work.
bool Work::Handle::await_function(Duration budget) {
  if (state) state->access().require_member();
  if (group::must_not_wait && !has_ended())
    throw Error(
        ErrorCode::invalid_argument,
        "a function that was given to Work::then() must not wait for another one; give it to that one's then()");
  // Others may wait for this rank meanwhile.
  const group::Continuation::Before awaited = after->operation();
  LongWait tells(
      [&](Duration waited) {
        if (awaited.pending) awaited.access->say_whom_it_awaits(*awaited.pending, waited);
      },
      [&] {
        if (awaited.pending) awaited.access->withdraw(*awaited.pending);
      });
  // Later than the budget, as above; and its operation times out first.
  WaitContext wait =
      waiting(Deadline::after(std::min(budget, Deadline::kMaxBudget) + timeout() + timeout() / 8), &tells);
  without_trace([&] {
    if (budget <= Duration::zero())
      after->await(wait);
    else
      after->await_for(wait, budget);
  });
  return throw_or_tell();
}

void Work::Handle::say_whom_it_awaits(Duration waited) {
  if (after || has_ended() || state->access().is_destroyed()) return;
  const group::BriefTurn turn(state->access(), Duration::zero());
  if (!turn) return;
  const group::Use use(state->access());
  group::Diagnosis& diagnosis = pending->watch_in(state->core().surroundings()).diagnosis();
  diagnosis.tell_others();
  diagnosis.say_whom_it_awaits(waited);
}

void Work::Handle::withdraw() noexcept {
  if (after || state->access().is_destroyed()) return;
  try {
    const group::BriefTurn turn(state->access(), Duration::zero());
    if (!turn) return;
    const group::Use use(state->access());
    if (state->core().broken()) return;  // what it has said explains why
    if (pending->watch) pending->watch->diagnosis().withdraw();
    if (RankRecord* const record = state->core().record()) record->held_up_by(-1);
  } catch (const Error&) {  // another thread uses the group
  }
}

bool Work::Handle::test() {
  if (throw_or_tell()) return true;
  if (after) {
    group::move_others_on();
    return throw_or_tell();
  }
  if (outlived_group()) return true;
  const group::BriefTurn turn(state->access(), Duration::zero());
  if (!turn) {  // the call of another thread moves it on
    group::move_others_on();
    return throw_or_tell();
  }
  const group::Use use(state->access());
  require_started();
  group::Flight& flight = state->flight();
  flight.progress_all();
  if (!pending->has_ended()) {
    RankRecord* const record = state->core().record();
    if (record != nullptr) record->touch();  // a rank that polls again and again is not stuck
    flight.look_why(*pending);
    group::move_others_on();
  }
  return throw_or_tell();
}

void Work::Handle::hold_up(Stream stream) {
  if (after)
    throw Error(
        ErrorCode::invalid_argument,
        "no stream can wait for a function that was given to Work::then(): call wait() without a stream, or let "
        "the stream wait for the operation itself");
  group::Core& core = state->core();
  refuse_collected();
  if (!pending->ends_on_device) throw state->flight().ends_on_host(*pending);
  if (const auto failure = error()) throw *failure;
  try {
    if (const auto& end = in_graph ? in_graph : pending->in_graph) return end->hold_up(stream);
    if (has_ended() || outlived_group()) return;
    // Messages are handed over, which may have to wait for the peer.
    const group::Use use(state->access(), pending->collective ? std::nullopt : std::optional(pending->timeout));
    state->flight().outlast_capture(pending->name, pending->timeout, pending.get());
    if (!pending->has_ended()) state->flight().hold_up(stream, *pending);
  } catch (const Error& problem) {
    if (!problem.group().empty()) throw;
    throw core.own_error(problem.code(), fmt::format("{}: {}", pending->name, problem.message()));
  }
  throw_or_tell();
}

void Work::Handle::time_out() {
  if (throw_or_tell()) return;
  if (after)
    throw Error(ErrorCode::timeout, fmt::format("the function given to Work::then() has not ended after {}",
                                                core::format_duration(after->timeout())));
  const group::Use use(state->access(), pending->timeout);
  state->flight().time_out(*pending);
}

Error Work::Handle::overdue(Duration waited) {
  const std::string late = fmt::format("has not ended after {}", core::format_duration(waited));
  if (after) return Error(ErrorCode::timeout, fmt::format("the function given to Work::then() {}; it goes on", late));
  group::Core& core = state->core();
  const group::BriefTurn turn(state->access(), Duration::zero());
  if (!turn || throw_or_tell())  // another thread moves it on, or it has ended a moment too late
    return core.error_about(-1, ErrorCode::timeout, fmt::format("{} {}; it goes on", pending->name, late));
  const group::Use use(state->access());
  require_started();
  group::Diagnosis& diagnosis = pending->watch_in(core.surroundings()).diagnosis();
  try {
    return group::with_world_rank(diagnosis.overdue(late), core.surroundings().peers);
  } catch (...) {
    core.fail_with_current(diagnosis, pending->name);
  }
}

Work::Work(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}

void Work::wait() {
  if (handle_) handle_->wait(Duration::zero());
}

void Work::wait(Stream stream) {
  if (handle_) handle_->hold_up(stream);
}

bool Work::wait_for(Duration budget) {
  if (!handle_) return true;
  return budget <= Duration::zero() ? test() : handle_->wait(budget);
}

Error Work::overdue(Duration waited) {
  if (!handle_) return Error(ErrorCode::timeout, "the operation has ended");
  return handle_->overdue(waited);
}

bool Work::test() {
  return !handle_ || handle_->test();
}

bool Work::has_ended() const noexcept {
  return !handle_ || handle_->has_ended();
}

std::optional<Error> Work::error() const {
  return handle_ ? handle_->error() : std::nullopt;
}

int Work::source() const {
  if (!handle_ || handle_->after) return -1;
  const group::Pending& pending = *handle_->pending;
  return pending.has_ended() && !pending.error ? pending.source : -1;
}

Work Work::then(std::function<void(const std::optional<Error>&)> function) {
  if (!function) throw Error(ErrorCode::invalid_argument, "Work::then() needs a function; this one is empty");
  group::Continuation::Before before;
  Duration timeout = kDefaultThenTimeout;
  std::shared_ptr<Group::State> state;
  if (handle_) {
    state = handle_->state;
    if (state) state->access().require_member();
    if (handle_->after)
      before.continuation = handle_->after;
    else
      before = {.pending = handle_->pending, .access = {state, &state->access()}};
    if (before.pending) handle_->refuse_collected();  // a scope that stays open would let it time out
    timeout = handle_->timeout();
  }
  auto after = std::make_shared<group::Continuation>(std::move(before), std::move(function), timeout);
  group::ProgressThread::instance().watch(after);
  return Work(std::make_shared<Handle>(Handle{.state = std::move(state), .after = std::move(after)}));
}

// ---- Several

bool wait_all(std::span<Work> works, Duration budget) {
  const Deadline until = Deadline::after(budget);
  std::optional<Error> first;
  bool all = true;
  for (Work& work : works) {
    try {
      if (budget <= Duration::zero())
        work.wait();
      else
        all = work.wait_for(until.remaining()) && all;
    } catch (const Error& error) {
      const auto own = work.error();
      if (!own || own->message() != error.message()) throw;  // about this wait: an interrupt, another thread's call
      if (!first) first = error;
    }
  }
  if (all && first) throw *first;
  return all;
}

std::optional<std::size_t> wait_any(std::span<Work> works, Duration budget) {
  if (works.empty()) throw Error(ErrorCode::invalid_argument, "wait_any() needs at least one Work; the list is empty");
  const auto ended = [&]() { return std::ranges::find_if(works, [](const Work& work) { return work.has_ended(); }); };
  if (ended() == works.end()) {
    const auto shortest = std::ranges::min_element(works, {}, [](const Work& work) { return work.handle_->timeout(); });
    const bool may_time_out = budget <= Duration::zero();
    // Before a function that was given to then(), its operation times out, and says who is missing.
    const Duration timeout = shortest->handle_->timeout();
    const Duration longest = shortest->handle_->after ? timeout + timeout / 8 : timeout;
    const Deadline until = Deadline::after(may_time_out ? longest : budget);
    // It is about the one whose timeout it would throw: others may wait for this rank meanwhile.
    Work::Handle& one = *shortest->handle_;
    LongWait awaited([&one](Duration waited) { one.say_whom_it_awaits(waited); }, [&one] { one.withdraw(); });
    WaitContext wait = works.front().handle_->waiting(Deadline::after(until.budget() + kDefaultThenTimeout), &awaited);
    for (int turn = 0; ended() == works.end(); ++turn) {
      // It moves on all that is in flight in its group, and in groups that no thread is in a call of.
      if (works[static_cast<std::size_t>(turn) % works.size()].test()) break;
      if (until.expired() && !may_time_out) return std::nullopt;
      if (until.expired()) shortest->handle_->time_out();
      without_trace([&] { wait.check(); });
      group::Flight::pause(turn);
    }
  }
  const auto first = ended();
  first->wait();  // throws its error
  return static_cast<std::size_t>(first - works.begin());
}

}  // namespace col
