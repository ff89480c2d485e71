#include "launch/processes/signals.hpp"

#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/processes.hpp"

namespace col::launch {
namespace {

constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kNotify = {SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

bool is_ignored(int signal) noexcept {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

std::string signal_name(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation != nullptr ? fmt::format("SIG{}", abbreviation) : fmt::format("signal {}", signal);
}

bool ends_job(int signal) noexcept {
  return std::ranges::find(kEnding, signal) != kEnding.end();
}

bool hangup_is_ignored() noexcept {
  return is_ignored(SIGHUP);
}

std::vector<int> changed_signals(bool without_hangup) {
  std::vector<int> changed;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    const bool is_changed = ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL;
    if (is_changed && (signal != SIGHUP || !without_hangup)) changed.push_back(signal);
  }
  return changed;
}

SignalGate::SignalGate() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int signal : kEnding) {
    if (signal != SIGHUP || !hangup_is_ignored()) sigaddset(&wanted, signal);
  }
  for (int signal : kNotify) sigaddset(&wanted, signal);
  if (!is_ignored(SIGTSTP)) sigaddset(&wanted, SIGTSTP);
  sigaddset(&wanted, SIGCHLD);
  fd_.reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw LaunchError(tools::exit_code::kLauncher, "cannot watch signals: {}", strerror(errno));
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &plain, &old_child_action_);
  ::sigprocmask(SIG_BLOCK, &wanted, &old_mask_);
}

SignalGate::~SignalGate() {
  ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  ::sigaction(SIGCHLD, &old_child_action_, nullptr);
}

int SignalGate::next() {
  signalfd_siginfo info;
  return ::read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

bool could_be_continued() {
  const pid_t own_group = ::getpgrp();
  pid_t parent = ::getppid();
  while (parent > 0 && ::getpgid(parent) == own_group) parent = read_process(parent).parent;
  return parent > 0 && ::getsid(parent) == ::getsid(0);
}

void stop_self() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // takes effect here
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
}

void die_of(int signal) {
  // SIGQUIT would leave a core file of the launcher, which helps nobody.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  ::_exit(tools::exit_code::kSignalBase + signal);
}

}  // namespace col::launch
