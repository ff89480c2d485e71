// A signal that a system call raises beside its error, kept from killing a program that never asked for it: SIGPIPE
// from a write to a peer that is gone, SIGXFSZ from one beyond `ulimit -f`.
#pragma once

#include <csignal>

namespace col::core {

// Blocks it for the calling thread, and at its end removes the one that was raised meanwhile (one that was pending
// before stays). The process's handlers stay as they are.
class BlockedSignal {
 public:
  explicit BlockedSignal(int signal) noexcept;
  ~BlockedSignal();
  BlockedSignal(const BlockedSignal&) = delete;
  BlockedSignal& operator=(const BlockedSignal&) = delete;

 private:
  bool is_pending() const noexcept;

  const int signal_;
  sigset_t only_;
  sigset_t before_;
  bool was_pending_;
};

}  // namespace col::core
