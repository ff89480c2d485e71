// COL_PROGRESS=thread: one thread per process that moves on what is in flight while the program computes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "group/state.hpp"

namespace col::group {

class ProgressThread {
 public:
  // Started at the first call in this process; a forked child gets its own. Never ended: at exit it sleeps, or the
  // process takes it along.
  static ProgressThread& instance();

  // Looks after `state` until nothing is in flight in it.
  void watch(std::shared_ptr<Group::State> state);

 private:
  ProgressThread();
  void start();
  [[noreturn]] void loop();

  const std::int64_t pid_;  // whose thread it is
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Group::State>> watched_;  // weak: a group ends when its handles do
};

}  // namespace col::group
