// Terminals: a pseudo-terminal for a rank, and the user's own while a rank takes its input.
#pragma once

#include <termios.h>

#include "common/unique_fd.hpp"

namespace col::launch {

struct Pty {
  tools::UniqueFd master;  // ours, non-blocking
  tools::UniqueFd slave;   // for the rank; not the controlling terminal of any process yet
};

// The rank's output is not changed: "\n" does not become "\r\n". `echo`: typed text is shown, as needed when a person
// types. Throws LaunchError (125) if the system has no more terminals.
Pty make_pty(bool echo);

// Gives the terminal behind `to` the window size of the one behind `from`. If it differs, the kernel tells the programs
// on it by SIGWINCH. Does nothing if `from` is not a terminal.
void copy_window_size(int from, int to);

// Keys reach the rank as they are typed. This includes ^C: the rank's terminal turns it into a signal. Only the input
// is raw; lines that are written to the terminal still start at its left side.
//
// Does nothing if the descriptor is not a terminal. A second process may have an object that was made before the
// terminal became raw, to restore the terminal if the first process is killed.
class RawTerminal {
 public:
  explicit RawTerminal(int fd);
  ~RawTerminal() { leave(); }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  bool is_terminal() const noexcept { return static_cast<bool>(fd_); }
  void enter();
  void leave();    // restores it if we had entered
  void restore();  // to the settings at construction

 private:
  void set(const termios& settings);

  tools::UniqueFd fd_;  // empty if there is no terminal
  termios before_{};
  bool entered_ = false;
};

}  // namespace col::launch
