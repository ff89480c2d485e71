// Some system calls raise a signal in addition to their error: SIGPIPE for a write to a closed peer, SIGXFSZ for a
// write beyond `ulimit -f`. BlockedSignal keeps such a signal from killing a program that never asked for it.
#pragma once

#include <csignal>

namespace col::core {

// Blocks the signal for the calling thread. At the end, it removes the signal that was raised meanwhile; one that was
// pending before stays. The process's handlers stay as they are.
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
