#include "core/blocked_signal.hpp"

#include <ctime>

#include <pthread.h>

namespace col::core {

BlockedSignal::BlockedSignal(int signal) noexcept : signal_(signal), was_pending_(is_pending()) {
  sigemptyset(&only_);
  sigaddset(&only_, signal);
  pthread_sigmask(SIG_BLOCK, &only_, &before_);
}

BlockedSignal::~BlockedSignal() {
  if (!was_pending_ && is_pending()) {
    const timespec now{};
    sigtimedwait(&only_, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool BlockedSignal::is_pending() const noexcept {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, signal_) == 1;
}

}  // namespace col::core
