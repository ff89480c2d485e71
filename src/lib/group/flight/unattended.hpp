// The groups of this process that have operations in flight while no thread is in a call of them. Every wait of every
// thread moves them forward, because peers may need this before they can do what the thread waits for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "group/flight/access.hpp"

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

// COL_PROGRESS=thread: one thread for each process, which moves operations forward while the program computes.
class ProgressThread {
 public:
  // Started at the first call in this process; a forked child gets its own. It never ends: at exit it sleeps, or it
  // ends with the process.
  static ProgressThread& instance();

  // Moves `group` forward until nothing is in flight in it.
  void watch(std::weak_ptr<Access> group);

 private:
  ProgressThread();
  void start();
  [[noreturn]] void loop();

  const std::int64_t pid_;  // the process that it belongs to
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Access>> watched_;  // weak: a group ends when its handles are gone
};

}  // namespace col::group
