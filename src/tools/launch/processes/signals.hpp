// Names of signals, their meaning for a job, and how to block them until they are read.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"

namespace col::launch {

// "SIGTERM"; "signal 99" when it has no name.
std::string signal_name(int signal);

// SIGINT, SIGTERM, SIGHUP and SIGQUIT end the job: they are forwarded to the ranks' process groups, and then escalated.
// SIGUSR1, SIGUSR2, SIGALRM and SIGWINCH are only passed on, to the rank processes themselves, because helpers that a
// rank started do not expect them.
bool ends_job(int signal) noexcept;

// True if SIGHUP is ignored, as under nohup. It stays ignored, for us and for the ranks. Other ignored signals do not
// stay ignored: a script that starts `colrun … &` passes SIGINT on as ignored, but `kill -INT` must still end the job.
bool hangup_is_ignored() noexcept;

// The signals that do not have their default action here; without SIGHUP, if it must stay as it is.
std::vector<int> changed_signals(bool without_hangup = false);

// As long as it lives, all signals above, SIGTSTP and SIGCHLD are blocked, and can be read from fd(). SIGCHLD has its
// default action, because ignoring it would lose exit statuses. SIGTSTP is not changed if it is ignored. The destructor
// restores mask and action.
class SignalGate {
 public:
  SignalGate();
  ~SignalGate();
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  int fd() const noexcept { return fd_.get(); }
  int next();  // the next pending signal; 0 if there is none

 private:
  tools::UniqueFd fd_;
  sigset_t old_mask_;
  struct sigaction old_child_action_;
};

// Whether there is a shell with job control that could continue this process: its process group has a parent in the
// same session. Where there is none, the kernel ignores SIGTSTP.
bool could_be_continued();

// Stops this process, as an uncaught SIGTSTP does. Returns when it is continued, or at once if nobody could continue
// it. Requires: SIGTSTP is blocked.
void stop_self();

// Ends this process by `signal`, so that its parent sees the same as if nobody had caught the signal.
[[noreturn]] void die_of(int signal);

}  // namespace col::launch
