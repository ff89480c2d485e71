// The process that the user started, and how a job's processes stand to each other:
//
//     front ("colrun")          the user's process: gets the signals, gives the exit status
//       │ lifeline (a socket)   carries forwarded signals; its end tells the watcher that the front is gone
//       ▼
//     watcher ("col-watcher")   own session; makes the job directory, starts the ranks, passes their output on,
//       │                       ends them, sweeps what they leave behind, removes the directory
//       ├─ rank 0 … rank n-1    own process groups; die with the watcher (PDEATHSIG)
//       └─ orphans of ranks     (setsid'ed, double-forked …) become the watcher's children: it is a subreaper
//
// Front killed by SIGKILL: the watcher sees the end of the lifeline, kills all below it, removes the directory.
// Watcher killed by SIGKILL: the ranks die at once; their orphans become children of the front, a subreaper too, which
// kills them and removes the directory. So every process of the job is at all times a descendant of one that will end
// it, whatever it did to its session, group, parent or environment: no list of pids to keep, none to be reused.
// Both killed in the same instant: ranks die, but a detached orphan and the directory stay. Only a cgroup could do
// more.
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/unique_fd.hpp"
#include "launch/ending.hpp"
#include "launch/job_directory.hpp"
#include "launch/launch.hpp"
#include "launch/launch_error.hpp"
#include "launch/processes.hpp"
#include "launch/program.hpp"
#include "launch/report.hpp"
#include "launch/shared_report.hpp"
#include "launch/signals.hpp"
#include "launch/watcher.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;
using tools::exit_code::kLauncher;

// While it lives, orphans of our descendants become our children.
class SubreaperScope {
 public:
  SubreaperScope() {
    ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~SubreaperScope() { ::prctl(PR_SET_CHILD_SUBREAPER, before_); }
  SubreaperScope(const SubreaperScope&) = delete;
  SubreaperScope& operator=(const SubreaperScope&) = delete;

 private:
  int before_ = 0;
};

// A job in the background must not take the terminal's input from the shell.
bool is_background_terminal(int fd) {
  const pid_t foreground = ::tcgetpgrp(fd);
  return foreground >= 0 && foreground != ::getpgrp();
}

// Does nothing when the watcher is gone.
void tell_watcher(int lifeline, int signal) {
  const auto byte = static_cast<unsigned char>(signal);
  ::send(lifeline, &byte, 1, MSG_NOSIGNAL);
}

void forward_signals(SignalGate& signals, int lifeline) {
  while (const int signal = signals.next()) {
    if (signal == SIGCHLD) continue;
    tell_watcher(lifeline, signal);
    if (signal != SIGTSTP) continue;
    stop_self();
    tell_watcher(lifeline, SIGCONT);
  }
}

// Passes signals on until the watcher has ended; does not reap it.
void attend(pid_t watcher, SignalGate& signals, int lifeline) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, watcher, 0)));
  pollfd events[] = {{pidfd.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  while (pidfd && (events[0].revents & POLLIN) == 0) {
    ::poll(events, 2, -1);
    if ((events[1].revents & POLLIN) != 0) forward_signals(signals, lifeline);
  }
}

JobResult clean_up_after(pid_t watcher, int wait_status, const ProcessInfo& process, const JobDirectory& directory) {
  // Children of ours that are older than the watcher belong to somebody else (`exec colrun` in a script).
  const std::size_t left = kill_children(process.start_ticks, Ending::Clock::now() + Ending::kKillWait);
  const bool removed = directory.remove();
  JobResult result;
  result.exit_code = kLauncher;
  result.error = fmt::format("the job's watcher process (pid {}) {}, so all ranks were ended{}{}", watcher,
                             describe_wait_status(wait_status),
                             left == 0 ? "" : fmt::format("; {} processes survived SIGKILL", left),
                             removed ? "" : fmt::format("; remove {} by hand", directory.path()));
  return result;
}

JobResult run_checked(const JobSpec& asked) {
  JobSpec spec = asked;
  if (spec.stdin_fd >= 0 && is_background_terminal(spec.stdin_fd)) spec.stdin_fd = -1;
  const std::string program = resolve_program(spec.command.front());
  const std::string job_id = make_job_id();
  const JobDirectory directory(job_id);
  SharedReport report(spec.ranks);
  SignalGate signals;
  SubreaperScope subreaper;
  int ends[2];
  // Not a pipe: telling a watcher that has just ended must not raise SIGPIPE.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw LaunchError(kLauncher, fmt::format("cannot create a socket pair: {}", strerror(errno)));
  UniqueFd lifeline_read(ends[0]);
  UniqueFd lifeline(ends[1]);

  const pid_t watcher = ::fork();
  if (watcher == 0) {
    lifeline.reset();
    watch_job({spec, program, job_id, directory, report, signals, lifeline_read.get()});
  }
  if (watcher < 0) {
    throw LaunchError(kLauncher, fmt::format("cannot start the watcher process: {}; allow more processes (ulimit -u)",
                                             strerror(errno)));
  }
  lifeline_read.reset();
  if (spec.stdin_fd >= 0) {
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup3(null.get(), spec.stdin_fd, spec.stdin_fd > STDERR_FILENO ? O_CLOEXEC : 0);
  }
  attend(watcher, signals, lifeline.get());

  const ProcessInfo process = read_process(watcher);  // still there: not reaped yet
  int wait_status = 0;
  ::waitpid(watcher, &wait_status, 0);
  JobResult result;
  return report.read(result) ? result : clean_up_after(watcher, wait_status, process, directory);
}

}  // namespace

JobResult run(const JobSpec& spec) {
  try {
    return run_checked(spec);
  } catch (const LaunchError& error) {
    JobResult result;
    result.exit_code = error.exit_code();
    result.error = error.what();
    return result;
  }
}

}  // namespace col::launch
