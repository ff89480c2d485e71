#include "launch/output/terminal.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <array>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw LaunchError(
      tools::exit_code::kLauncher,
      fmt::format("cannot {} a pseudo-terminal: {}; run without --pty or with fewer ranks", what, strerror(errno)));
}

}  // namespace

Pty make_pty(bool echo) {
  Pty pty;
  // Without O_NOCTTY it would become the controlling terminal of this process.
  pty.master.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!pty.master) refuse("create");
  std::array<char, 64> name{};
  if (::grantpt(pty.master.get()) != 0 || ::unlockpt(pty.master.get()) != 0 ||
      ::ptsname_r(pty.master.get(), name.data(), name.size()) != 0) {
    refuse("unlock");
  }
  pty.slave.reset(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!pty.slave || ::tcgetattr(pty.slave.get(), &settings) != 0) refuse("open");
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  if (!echo) settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  if (::tcsetattr(pty.slave.get(), TCSANOW, &settings) != 0) refuse("set");
  return pty;
}

void copy_window_size(int from, int to) {
  winsize size{};
  if (::ioctl(from, TIOCGWINSZ, &size) == 0) ::ioctl(to, TIOCSWINSZ, &size);
}

RawTerminal::RawTerminal(int fd) {
  if (fd < 0 || ::tcgetattr(fd, &before_) != 0) return;
  fd_.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 3));  // the caller may give the descriptor away
}

void RawTerminal::enter() {
  termios raw = before_;
  const tcflag_t output = raw.c_oflag;
  ::cfmakeraw(&raw);
  raw.c_oflag = output;
  set(raw);
  entered_ = true;
}

void RawTerminal::leave() {
  if (entered_) restore();
  entered_ = false;
}

void RawTerminal::restore() {
  set(before_);
}

void RawTerminal::set(const termios& settings) {
  if (!fd_) return;
  // A process in the background would be stopped by its terminal for this.
  sigset_t background;
  sigset_t mask;
  sigemptyset(&background);
  sigaddset(&background, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &background, &mask);
  ::tcsetattr(fd_.get(), TCSANOW, &settings);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

}  // namespace col::launch
