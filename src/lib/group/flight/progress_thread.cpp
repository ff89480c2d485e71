#include "group/flight/progress_thread.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "core/log.hpp"

namespace col::group {
namespace {

// Between two looks while something is in flight: short against a message, long against a look.
constexpr auto kPause = std::chrono::microseconds(50);

}  // namespace

ProgressThread& ProgressThread::instance() {
  static std::atomic<ProgressThread*> current{nullptr};
  // acquire pairs with the release below: a thread that sees the object sees it complete.
  ProgressThread* known = current.load(std::memory_order_acquire);
  while (known == nullptr || known->pid_ != getpid()) {
    std::unique_ptr<ProgressThread> own(new ProgressThread);
    if (!current.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel)) continue;
    known = own.release();
    known->start();
  }
  return *known;
}

ProgressThread::ProgressThread() : pid_(getpid()) {}

// Every signal is blocked in it: the program's are never delivered to a thread that it does not know of.
void ProgressThread::start() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([this] { loop(); }).detach();
  } catch (const std::system_error& error) {
    core::log::warn("COL_PROGRESS=thread: no thread can be started ({}); operations move inside calls only",
                    error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
