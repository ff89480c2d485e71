// What this process has in flight in addition to the call that waits. Every wait moves it forward.
#pragma once

#include <atomic>

#include "core/clock/this_process.hpp"

namespace col::core {

// The group layer sets these members, because the waits of lower layers cannot see the group layer.
struct Background {
  // The number of groups with operations in flight that no thread is in a call of. Raised with release, pairs with
  // any(): a thread that sees a group also sees `move_on`.
  static std::atomic<int>& groups() noexcept { return process_state().unattended_groups; }
  // Moves all of them forward. Does not block and throws nothing. It is set before groups() first counts.
  static inline std::atomic<void (*)() noexcept> move_on{nullptr};

  static bool any() noexcept { return groups().load(std::memory_order_acquire) > 0; }
};

}  // namespace col::core
