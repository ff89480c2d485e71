// Signals by name, which of them a job knows, and keeping them off a process until they are read.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"

namespace col::launch {

// "SIGTERM"; "signal 99" when it has no name.
std::string signal_name(int signal);

// SIGINT, SIGTERM, SIGHUP, SIGQUIT end the job: forwarded to the ranks' process groups, then escalated. SIGUSR1,
// SIGUSR2, SIGALRM and SIGWINCH are only passed on, to the rank processes themselves: helpers that a rank started do
// not expect them.
bool ends_job(int signal) noexcept;

// True when SIGHUP is ignored, as under nohup. It stays so, for us and for the ranks. Other ignored signals do not: a
// script that starts `colrun … &` hands SIGINT ignored, and `kill -INT` shall still end the job.
bool hangup_is_ignored() noexcept;

// Those that are not at their default action here, but for SIGHUP where it shall stay as it is.
std::vector<int> changed_signals(bool without_hangup = false);

// While it lives, all signals above, SIGTSTP and SIGCHLD are blocked, to be read from fd(). SIGCHLD is at its default
// action, as ignoring it would lose exit statuses; SIGTSTP is left alone where it is ignored. Restores mask and action.
class SignalGate {
 public:
  SignalGate();
  ~SignalGate();
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  int fd() const noexcept { return fd_.get(); }
  int next();  // the next pending signal, 0 when there is none

 private:
  tools::UniqueFd fd_;
  sigset_t old_mask_;
  struct sigaction old_child_action_;
};

// Stops this process as SIGTSTP does that nobody catches; returns when it is continued, or at once where nobody could
// continue it (no shell with job control). Requires: SIGTSTP is blocked.
void stop_self();

// Ends this process by `signal`, so that its parent sees the same as if nobody had caught it.
[[noreturn]] void die_of(int signal);

}  // namespace col::launch
