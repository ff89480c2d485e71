// The groups of this process that have operations in flight while no thread is in a call of them. Every wait of every
// thread moves them forward, because peers may need this before they can do what the thread waits for.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "group/state.hpp"

namespace col::group {

class InFlight {
 public:
  // A forked child has its own list: its parent's groups do not concern it.
  static InFlight& instance();

  // From now on, waits move `state` forward, until remove() has been called as often. Any thread may call it.
  void add(std::weak_ptr<Group::State> state);
  void remove() noexcept;

  // Does not block: if a thread is in a call of a group, that thread moves the group. An error breaks its own group,
  // and is kept for the thread that waits there.
  void move_on() noexcept;

 private:
  InFlight() = default;

  std::mutex mutex_;
  std::vector<std::weak_ptr<Group::State>> states_;  // weak: a group ends when its handles do
};

}  // namespace col::group
