// The user's terminal while a rank's pseudo-terminal takes its input.
#pragma once

#include <termios.h>

#include "common/unique_fd.hpp"

namespace col::launch {

// Keys reach the rank as they are typed (^C, too: it is the rank's terminal that makes a signal of it). Only the way in
// is raw; lines that are written to the terminal go on starting at its left side.
//
// Does nothing when the descriptor is no terminal. A second process may hold one, made before the terminal became raw,
// to restore it when the first was killed.
class RawTerminal {
 public:
  explicit RawTerminal(int fd);
  ~RawTerminal() { leave(); }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  bool is_terminal() const noexcept { return static_cast<bool>(fd_); }
  void enter();
  void leave();    // restores it if we had entered
  void restore();  // to what it was at construction

 private:
  void set(const termios& settings);

  tools::UniqueFd fd_;  // empty when there is no terminal
  termios before_{};
  bool entered_ = false;
};

}  // namespace col::launch
