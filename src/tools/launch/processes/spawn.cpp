#include "launch/processes/spawn.hpp"

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace col::launch {
namespace {

void reset_signals(std::span<const int> changed) {
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (const int signal : changed) ::sigaction(signal, &plain, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void close_all_but(std::span<const int> keep) {
  unsigned first = STDERR_FILENO + 1;
  for (int fd : keep) {
    if (static_cast<unsigned>(fd) > first) ::close_range(first, static_cast<unsigned>(fd) - 1, 0);
    first = static_cast<unsigned>(fd) + 1;
  }
  ::close_range(first, ~0U, 0);
}

// In the child, which shares our memory: writes nothing but its own stack and `exec_error`.
[[noreturn, gnu::noinline]] void become(const ChildPlan& plan, pid_t parent, volatile int& exec_error) {
  if (plan.descriptors.controlling_terminal) {
    ::setsid();
    ::ioctl(plan.descriptors.stdout_fd, TIOCSCTTY, 0);
  } else {
    ::setpgid(0, 0);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // the parent died before the line above
  ::dup2(plan.descriptors.stdin_fd, STDIN_FILENO);
  ::dup2(plan.descriptors.stdout_fd, STDOUT_FILENO);
  ::dup2(plan.descriptors.stderr_fd, STDERR_FILENO);
  close_all_but(plan.keep_fds);
  ::setrlimit(RLIMIT_NOFILE, &plan.open_files);
  constexpr rlimit kNone{0, 0};
  if (!plan.core_dumps) ::setrlimit(RLIMIT_CORE, &kNone);
  if (plan.cpus != nullptr) plan.cpus->apply();
  reset_signals(plan.changed_signals);
  ::execve(plan.path, plan.arguments, plan.environment);
  exec_error = errno;
  ::_exit(127);
}

}  // namespace

SpawnResult spawn(const ChildPlan& plan) {
  volatile int exec_error = 0;
  const pid_t parent = ::getpid();
  // vfork: no page tables to copy, and an exec that fails has told us by the time it returns here.
  const pid_t pid = ::vfork();
  if (pid == 0) become(plan, parent, exec_error);
  if (pid < 0) return {.fork_error = errno};
  if (exec_error != 0) {
    ::waitpid(pid, nullptr, 0);
    return {.exec_error = exec_error};
  }
  return {.pid = pid};
}

}  // namespace col::launch
