// The groups of this process that have operations in flight while no thread is in a call of them. Every wait of every
// thread moves them forward, because peers may need this before they can do what the thread waits for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/clock/lock.hpp"
#include "group/flight/access.hpp"
#include "group/flight/continuation.hpp"

namespace col::group {

class Unattended {
 public:
  // A forked child has its own list: its parent's groups do not concern it.
  static Unattended& instance();

  // From now on, waits move `group` forward, until remove() has been called as often. Any thread may call it.
  void add(std::weak_ptr<Access> group);
  void remove() noexcept;

  // Does not block: if a thread is in a call of a group, that thread moves the group. An error breaks its own group,
  // and is kept for the thread that waits there.
  void move_on() noexcept;

 private:
  Unattended() = default;

  std::mutex mutex_;
  std::vector<std::weak_ptr<Access>> groups_;  // weak: a group ends when its handles do
};

// One thread for each process: it moves operations forward while the program computes (COL_PROGRESS=thread), and runs
// continuations.
class ProgressThread {
 public:
  // A forked child gets its own. It is started when it has something to do, and never ends: at exit it sleeps, or it
  // ends with the process.
  static ProgressThread& instance();

  // Moves `group` forward until nothing is in flight in it.
  void watch(std::weak_ptr<Access> group);
  // Runs it when what comes before has ended. Throws resource if the thread cannot be started.
  void watch(std::shared_ptr<Continuation> continuation);

 private:
  ProgressThread();
  void require_started();
  [[noreturn]] void loop();

  const std::int64_t pid_;  // the process that it belongs to
  core::Mutex mutex_;       // guards the rest
  bool is_started_ = false;
  bool has_warned_ = false;
  core::Condition changed_;
  std::vector<std::weak_ptr<Access>> watched_;  // weak: a group ends when its handles are gone
  std::vector<std::shared_ptr<Continuation>> continuations_;
};

}  // namespace col::group
