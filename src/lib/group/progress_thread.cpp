#include "group/progress_thread.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace col::group {
namespace {

// Between two looks while something is in flight: short against a message, long against a look.
constexpr auto kPause = std::chrono::microseconds(50);

}  // namespace

ProgressThread& ProgressThread::instance() {
  static auto* const thread = new ProgressThread;
  return *thread;
}

ProgressThread::ProgressThread() {
  std::thread([this] { loop(); }).detach();
}

void ProgressThread::watch(std::shared_ptr<Group::State> state) {
  const std::lock_guard lock(mutex_);
  const bool known =
      std::any_of(watched_.begin(), watched_.end(), [&](const auto& watched) { return watched.lock() == state; });
  if (!known) watched_.push_back(std::move(state));
  changed_.notify_one();
}

void ProgressThread::loop() {
  std::vector<std::weak_ptr<Group::State>> round;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !watched_.empty(); });
      round = std::exchange(watched_, {});
    }
    for (const auto& watched : round) {
      const auto state = watched.lock();
      if (state && state->progress_in_background()) watch(state);
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace col::group
