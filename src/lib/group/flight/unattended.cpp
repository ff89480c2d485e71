#include "group/flight/unattended.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "core/clock/this_process.hpp"
#include "core/job/background.hpp"
#include "core/log.hpp"

namespace col::group {
namespace {

void move_all_on() noexcept {
  Unattended::instance().move_on();
}

// The parent's may be locked by a thread that is not here. No memory is asked for: its locks may be as bad.
void forget_parent() {
  core::state_of_process.unattended.store(nullptr, std::memory_order_relaxed);
  core::Background::groups().store(0, std::memory_order_relaxed);
}

// Between two looks while nothing moves: short against a message, long against a look.
constexpr auto kPause = std::chrono::microseconds(50);
// So many looks follow one another without a pause when there is something new, and after a look that took longer than
// the pause: it has moved something, and peers soon have more. (Where looks are that long anyway, a pause saves
// little.)
constexpr int kEagerLooks = 200;

// A group is in the list once.
void add_once(std::vector<std::weak_ptr<Access>>& groups, std::weak_ptr<Access> group) {
  const auto is_same = [&](const auto& known) { return !known.owner_before(group) && !group.owner_before(known); };
  if (std::none_of(groups.begin(), groups.end(), is_same)) groups.push_back(std::move(group));
}

}  // namespace

Unattended& Unattended::instance() {
  // acquire pairs with the release below: a thread that sees the object sees it complete. Never destroyed: groups may
  // outlive statics.
  std::atomic<void*>& of_process = core::process_state().unattended;
  void* known = of_process.load(std::memory_order_acquire);
  if (known != nullptr) return *static_cast<Unattended*>(known);
  static const int kRegistered = ::pthread_atfork(nullptr, nullptr, forget_parent);
  static_cast<void>(kRegistered);
  core::Background::move_on.store(move_all_on, std::memory_order_relaxed);
  std::unique_ptr<Unattended> own(new Unattended);
  if (of_process.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel)) known = own.release();
  return *static_cast<Unattended*>(known);
}

void Unattended::add(std::weak_ptr<Access> group) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(groups_, [](const auto& known) { return known.expired(); });
    add_once(groups_, std::move(group));
  }
  core::Background::groups().fetch_add(1, std::memory_order_release);  // pairs with Background::any()
}

void Unattended::remove() noexcept {
  core::Background::groups().fetch_sub(1, std::memory_order_relaxed);
}

void Unattended::move_on() noexcept {
  // A function of a user's that runs in here may wait itself: not for what runs it.
  if (Access::is_moving_one_on()) return;
  for (std::size_t i = 0;; ++i) {
    std::shared_ptr<Access> access;
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock.owns_lock() || i >= groups_.size()) return;
      access = groups_[i].lock();
    }
    if (access) access->move_on_unattended();
  }
}

// ---- The thread

ProgressThread& ProgressThread::instance() {
  std::atomic<void*>& current = core::process_state().progress_thread;
  // acquire pairs with the release below: a thread that sees the object sees it complete.
  void* known = current.load(std::memory_order_acquire);
  while (known == nullptr || static_cast<ProgressThread*>(known)->pid_ != core::own_pid()) {
    std::unique_ptr<ProgressThread> own(new ProgressThread);
    if (current.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel)) known = own.release();
  }
  return *static_cast<ProgressThread*>(known);
}

ProgressThread::ProgressThread() : pid_(core::own_pid()) {}

// Requires: mutex_ is held. Every signal is blocked in the thread: the program's are never delivered to one that it
// does not know of.
void ProgressThread::require_started() {
  if (is_started_) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string problem;
  try {
    core::Thread([this] { loop(); }).detach();
    is_started_ = true;
  } catch (const std::system_error& error) {
    problem = error.what();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!is_started_) throw Error(ErrorCode::resource, fmt::format("no thread can be started: {}", problem));
}

void ProgressThread::watch(std::weak_ptr<Access> group) {
  const std::lock_guard lock(mutex_);
  try {
    require_started();
  } catch (const Error& error) {
    if (!std::exchange(has_warned_, true))
      core::log::warn("COL_PROGRESS=thread: {}; operations move inside calls only", error.message());
    return;
  }
  add_once(watched_, std::move(group));
  changed_.notify_one();
}

void ProgressThread::watch(std::shared_ptr<Continuation> continuation) {
  const std::lock_guard lock(mutex_);
  require_started();
  continuations_.push_back(std::move(continuation));
  changed_.notify_one();
}

void ProgressThread::loop() {
  must_not_wait = true;
  std::vector<std::weak_ptr<Access>> groups;
  std::vector<std::shared_ptr<Continuation>> continuations;
  int eager = 0;  // looks that are left until the next pause
  core::Clock::time_point next_look_at_all{};
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const std::size_t known = continuations.size();
      continuations_.insert(continuations_.begin(), continuations.begin(), continuations.end());
      changed_.wait(lock, [this] { return !watched_.empty() || !continuations_.empty(); });
      if (continuations_.size() > known) eager = kEagerLooks;
      groups = std::exchange(watched_, {});
      continuations = std::exchange(continuations_, {});
    }
    const auto began = core::Clock::now();
    for (const auto& watched : groups) {
      const auto group = watched.lock();
      if (group && group->move_on_unattended()) watch(group);
    }
    const Access* moved = nullptr;
    std::erase_if(continuations, [&](const auto& continuation) { return continuation->move_on(moved); });
    const auto now = core::Clock::now();
    eager = now - began > kPause ? kEagerLooks : std::max(eager - 1, 0);
    // As every wait does, but less often: what the others wait for may be in flight in a group of which nobody asks
    // anything here.
    if (!continuations.empty() && now >= next_look_at_all) {
      Unattended::instance().move_on();
      next_look_at_all = core::Clock::now() + kPause;
    }
    if (eager > 0) {
      core::yield();
    } else {
      core::sleep_for(kPause);
    }
  }
}

}  // namespace col::group
