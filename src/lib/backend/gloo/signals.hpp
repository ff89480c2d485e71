// Signals around foreign code: Gloo writes to sockets with writev(), so a peer that closed raises SIGPIPE, which kills
// a program that never asked for sockets. Both guards act on the calling thread only; the process's handlers stay as
// they are.
#pragma once

#include <csignal>

namespace col::gloo_backend {

// Blocks SIGPIPE, and at its end removes the one that was raised meanwhile (a SIGPIPE that was pending before stays).
class SigpipeGuard {
 public:
  SigpipeGuard() noexcept;
  ~SigpipeGuard();
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t before_;
  bool was_pending_;
};

// Blocks every signal, so that a thread started meanwhile inherits the mask: signals of the process are never delivered
// to a thread that the program does not know of.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() noexcept;
  ~AllSignalsBlocked();
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace col::gloo_backend
