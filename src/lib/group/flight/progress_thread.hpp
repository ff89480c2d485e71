// COL_PROGRESS=thread: one thread for each process, which moves operations forward while the program computes.
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
  // Started at the first call in this process; a forked child gets its own. It never ends: at exit it sleeps, or it
  // ends with the process.
  static ProgressThread& instance();

  // Moves `state` forward until nothing is in flight in it.
  void watch(std::shared_ptr<Group::State> state);

 private:
  ProgressThread();
  void start();
  [[noreturn]] void loop();

  const std::int64_t pid_;  // the process that it belongs to
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Group::State>> watched_;  // weak: a group ends when its handles are gone
};

}  // namespace col::group
