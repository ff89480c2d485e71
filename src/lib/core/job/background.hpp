// What this process has in flight beside the call that waits: every wait moves it on.
#pragma once

#include <atomic>

namespace col::core {

// Filled in by the group layer, which the waits of the layers below do not see.
struct Background {
  // Groups with operations in flight that no thread is in a call of. Raised with release, pairs with any(): whoever
  // sees a group sees `move_on`.
  static inline std::atomic<int> groups{0};
  // Moves all of them on, does not block, and throws nothing. Set before `groups` first counts.
  static inline std::atomic<void (*)() noexcept> move_on{nullptr};

  static bool any() noexcept { return groups.load(std::memory_order_acquire) > 0; }
};

}  // namespace col::core
