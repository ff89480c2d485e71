// One call of a user's thread on a group.
#pragma once

#include <mutex>

#include "group/state.hpp"

namespace col {

// Marks the group as in use by this thread, for the length of one call.
class Group::State::Use {
 public:
  explicit Use(State& state) : state_(state) {
    state.require_usable();
    state.require_not_inside();
    // acquire pairs with the release below: the next call, maybe in another thread, sees what this one wrote.
    if (state_.in_use_.exchange(true, std::memory_order_acquire)) state_.throw_in_use();
    lock_ = std::unique_lock(state_.mutex_);
    try {
      state.require_usable();  // again: another thread may have destroyed it in between
      state_.leave_to_others(false);
    } catch (...) {
      lock_.unlock();
      state_.in_use_.store(false, std::memory_order_release);
      throw;
    }
  }
  ~Use() {
    state_.leave_to_others(true);
    lock_.unlock();
    state_.in_use_.store(false, std::memory_order_release);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  State& state_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace col
