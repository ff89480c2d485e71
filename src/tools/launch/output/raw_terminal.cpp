#include "launch/output/raw_terminal.hpp"

#include <fcntl.h>

#include <csignal>

namespace col::launch {

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
