// Some system calls raise a signal in addition to their error: SIGPIPE for a write to a closed peer, SIGXFSZ for a
// write beyond `ulimit -f`. BlockedSignal keeps such a signal from killing a program that never asked for it.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace col::core {

// Blocks the signal for the calling thread. At the end, it removes the signal that was raised meanwhile; one that was
// pending before stays. The process's handlers stay as they are.
class BlockedSignal {
 public:
  explicit BlockedSignal(int signal) noexcept : signal_(signal), was_pending_(is_pending()) {
    sigemptyset(&only_);
    sigaddset(&only_, signal);
    pthread_sigmask(SIG_BLOCK, &only_, &before_);
  }
  ~BlockedSignal() {
    if (!was_pending_ && is_pending()) {
      const timespec now{};
      sigtimedwait(&only_, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BlockedSignal(const BlockedSignal&) = delete;
  BlockedSignal& operator=(const BlockedSignal&) = delete;

 private:
  bool is_pending() const noexcept {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, signal_) == 1;
  }

  const int signal_;
  sigset_t only_;
  sigset_t before_;
  bool was_pending_;
};

// Blocks every signal, so that a thread that is started meanwhile inherits the mask. So signals of the process are
// never delivered to a thread that the program does not know about.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace col::core
