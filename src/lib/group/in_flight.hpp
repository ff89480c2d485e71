// The groups of this process that have operations in flight while no thread is in a call of them. Every wait of every
// thread moves them on: peers may need that before they come to what the thread waits for.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "group/state.hpp"

namespace col::group {

class InFlight {
 public:
  // A forked child has one of its own: the groups of its parent are none of its business.
  static InFlight& instance();

  // From now on `state` is moved on, until remove() as often. Any thread.
  void add(std::weak_ptr<Group::State> state);
  void remove() noexcept;

  // Does not block: a group that a thread is in a call of is that thread's to move. What goes wrong in a group breaks
  // that one, and is kept for whoever waits there.
  void move_on() noexcept;

 private:
  InFlight() = default;

  std::mutex mutex_;
  std::vector<std::weak_ptr<Group::State>> states_;  // weak: a group ends when its handles do
};

}  // namespace col::group
