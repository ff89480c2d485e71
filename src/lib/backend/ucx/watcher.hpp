// Wakes a rank that sleeps somewhere else than on UCX's event descriptor: a thread that sleeps there in its place.
//
// UCX has no thread that moves messages, and two of them would get in each other's way. So the thread moves nothing. It
// watches only while the rank sleeps, and a rank that is awake pays nothing for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/clock/lock.hpp"
#include "core/unique_fd.hpp"

namespace col::ucx_backend {

class Watcher {
 public:
  // `events`: the descriptor, which stays open as long as the object lives. Throws resource.
  Watcher(int events, std::function<void()> ring);
  // Once it has returned, `ring` is not running any more.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Calls `ring` once when there is an event, from now on. One thread at a time may call it.
  void watch() noexcept;

 private:
  // The values of the word.
  static constexpr std::uint32_t kIdle = 0, kWatching = 1, kEnded = 2;
  void run() noexcept;

  const int events_;
  const std::function<void()> ring_;
  core::UniqueFd end_;  // becomes readable at the end
  std::atomic<std::uint32_t> state_{kIdle};
  core::Thread thread_;
};

}  // namespace col::ucx_backend
