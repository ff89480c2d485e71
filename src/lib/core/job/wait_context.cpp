#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <col/job.hpp>

#include "core/duration.hpp"
#include "core/job/background.hpp"

namespace col {

namespace {

constexpr Duration kFirstSlow = std::chrono::milliseconds(100);
// With what a look takes, a loss is known within a second.
constexpr Duration kLongestSlowInterval = std::chrono::milliseconds(800);
// How late a wait may notice an abort or a lost peer when nothing wakes it.
constexpr Duration kLongestSlice = std::chrono::milliseconds(50);
// The same while other groups have operations in flight, which move on between two slices: a sleep is long against a
// look at them, and short against a long message.
constexpr Duration kBusySlice = std::chrono::microseconds(50);

// What the interrupt of this thread's last wait has thrown, until somebody takes it.
thread_local std::exception_ptr interruption;
// What it has said with say_place().
thread_local std::string said_place;

}  // namespace

Deadline Deadline::after(Duration budget, Duration spent) noexcept {
  budget = std::clamp(budget, Duration::zero(), kMaxBudget);
  return Deadline(Clock::now() + budget - std::clamp(spent, Duration::zero(), budget), budget);
}

Duration Deadline::remaining() const noexcept {
  return std::max<Duration>(at_ - Clock::now(), Duration::zero());
}

WaitObserver::~WaitObserver() = default;

WaitContext::WaitContext(Deadline deadline, ControlPage* page, RankRecord* record, WaitObserver* observer,
                         const Interrupt* interrupt) noexcept
    : WaitContext(deadline.budget(), page, record, observer, interrupt) {
  deadline_ = deadline;
  begin();
}

WaitContext::WaitContext(Duration budget, ControlPage* page, RankRecord* record, WaitObserver* observer,
                         const Interrupt* interrupt) noexcept
    : is_started_(false),
      deadline_(Deadline::of(budget)),
      page_(page),
      record_(record),
      observer_(observer),
      interrupt_(interrupt != nullptr && *interrupt ? interrupt : nullptr),
      slow_interval_(2 * kFirstSlow) {
  if (interrupt_ != nullptr) interruption = nullptr;
}

void WaitContext::start() noexcept {
  if (is_started_) return;
  deadline_ = Deadline::after(deadline_.budget());
  begin();
}

void WaitContext::begin() noexcept {
  is_started_ = true;
  started_ = Deadline::Clock::now();
  next_slow_ = started_ + kFirstSlow;
  next_interrupt_ = started_ + kLongestSlice;
  if (before_waiting_) std::exchange(before_waiting_, nullptr)();
}

void WaitContext::check() {
  start();
  // The job's cause comes first: what the observer or the clock find then is a consequence of it.
  if (page_ != nullptr && page_->aborted()) {
    if (const auto cause = page_->abort_cause()) throw Error(cause->code, cause->message, {}, cause->rank, cause->rank);
  }
  hear_news();
  if (meanwhile_) meanwhile_();
  if (core::Background::any()) (*core::Background::move_on.load(std::memory_order_relaxed))();
  const auto now = Deadline::Clock::now();
  ask_interrupt(now);
  look(now);
  if (now < deadline_.at()) return;
  if (observer_ != nullptr) observer_->on_timeout(deadline_.budget());
  const std::string what = ask_what_ ? ask_what_() : what_;
  throw Error(
      ErrorCode::timeout,
      fmt::format("timed out after {} waiting for {}; a rank may be missing, stuck or slow: look at what the others "
                  "print, or allow more time (COL_TIMEOUT)",
                  core::format_duration(deadline_.budget()), what.empty() ? "another rank" : what));
}

void WaitContext::hear_news() {
  if (page_ == nullptr) return;
  // acquire: what has happened is there.
  const std::uint32_t news = page_->news().load(std::memory_order_acquire);
  if (std::exchange(news_, news) != news && observer_ != nullptr) observer_->on_news(news);
}

void WaitContext::look() {
  start();
  look(Deadline::Clock::now());
}

void WaitContext::look(Deadline::Clock::time_point now) {
  if (now < next_slow_) return;
  next_slow_ = now + slow_interval_;
  slow_interval_ = std::min(2 * slow_interval_, kLongestSlowInterval);
  if (!told_) waiting(-1, -1);
  if (observer_ != nullptr && observer_->on_slow(now - started_)) next_slow_ = now + kFirstSlow;
}

void WaitContext::ask_interrupt(Deadline::Clock::time_point now) {
  if (interrupt_ == nullptr || now < next_interrupt_) return;
  next_interrupt_ = now + kLongestSlice;
  try {
    (*interrupt_)();
  } catch (...) {
    interruption = std::current_exception();
    throw;
  }
  if (record_ != nullptr && !said_place.empty()) record_->place(said_place);
  said_place.clear();
}

void WaitContext::say_place(std::string_view place) {
  said_place = place;
}

std::exception_ptr WaitContext::take_interruption() noexcept {
  return std::exchange(interruption, nullptr);
}

void WaitContext::hurry() noexcept {
  start();
  next_slow_ = started_;
}

Duration WaitContext::slice() noexcept {
  start();
  if (sleeps_) return deadline_.remaining();
  Duration slice = std::min(core::Background::any() ? kBusySlice : kLongestSlice, deadline_.remaining());
  if (observer_ != nullptr) slice = std::min<Duration>(slice, next_slow_ - Deadline::Clock::now());
  return std::max(slice, Duration::zero());
}

}  // namespace col
