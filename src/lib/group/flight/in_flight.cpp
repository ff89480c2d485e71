#include "group/flight/in_flight.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/job/background.hpp"

namespace col::group {
namespace {

std::atomic<InFlight*> current{nullptr};

void move_all_on() noexcept {
  InFlight::instance().move_on();
}

// The parent's may be locked by a thread that is not here. No memory is asked for: its locks may be as bad.
void forget_parent() {
  current.store(nullptr, std::memory_order_relaxed);
  core::Background::groups.store(0, std::memory_order_relaxed);
}

}  // namespace

InFlight& InFlight::instance() {
  // acquire pairs with the release below: a thread that sees the object sees it complete. Never destroyed: groups may
  // outlive statics.
  InFlight* known = current.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  static const int kRegistered = ::pthread_atfork(nullptr, nullptr, forget_parent);
  static_cast<void>(kRegistered);
  core::Background::move_on.store(move_all_on, std::memory_order_relaxed);
  std::unique_ptr<InFlight> own(new InFlight);
  if (current.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel)) known = own.release();
  return *known;
}

void InFlight::add(std::weak_ptr<Group::State> state) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(states_, [](const auto& known) { return known.expired(); });
    const auto is_same = [&](const auto& known) { return !known.owner_before(state) && !state.owner_before(known); };
    if (std::none_of(states_.begin(), states_.end(), is_same)) states_.push_back(std::move(state));
  }
  core::Background::groups.fetch_add(1, std::memory_order_release);  // pairs with Background::any()
}

void InFlight::remove() noexcept {
  core::Background::groups.fetch_sub(1, std::memory_order_relaxed);
}

void InFlight::move_on() noexcept {
  // A function of a user's that runs in here may wait itself: not for what runs it.
  if (Group::State::is_moving_one_on()) return;
  for (std::size_t i = 0;; ++i) {
    std::shared_ptr<Group::State> state;
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock.owns_lock() || i >= states_.size()) return;
      state = states_[i].lock();
    }
    if (state) state->progress_in_background();
  }
}

}  // namespace col::group
