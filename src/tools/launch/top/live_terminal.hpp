// The user's terminal while a live view has it: another screen, keys as they are typed, and signals that can be waited
// for. It gets back what it was on every way out but SIGKILL.
#pragma once

#include <termios.h>

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"

namespace col::launch {

// Whether a live view can be shown: stdin and stdout are a terminal, and one that knows more than lines.
bool is_live_terminal();

// For who has started the process of a LiveTerminal that was killed. `before`: the settings of stdin from before.
void restore_terminal(const termios& before);

class LiveTerminal {
 public:
  using Clock = core::Clock;

  // Takes stdin and stdout. Blocks the signals that end or stop a program, until the object is gone. Throws
  // std::system_error if there is no terminal.
  LiveTerminal();
  ~LiveTerminal();
  LiveTerminal(const LiveTerminal&) = delete;
  LiveTerminal& operator=(const LiveTerminal&) = delete;

  struct Size {
    std::size_t columns = 80, lines = 24;
  };
  Size size() const;
  // Replaces what is shown. Lines are not wider than the terminal.
  void show(const std::vector<std::string>& lines);

  struct Event {
    enum class Kind { time, key, readable, resized, signal, gone } kind = Kind::time;
    char key = 0;
    int signal = 0;  // that ends the program: leave(), then die_of()
  };
  // The next event, at `latest` the time. Stops this process at ^Z, and goes on when it is continued. `other`: a
  // descriptor that is waited for, too; -1: none.
  Event next(Clock::time_point latest, int other = -1);

  // Gives the terminal back. The destructor does the same.
  void leave();

 private:
  void enter();
  void take_keys();
  char take_key();

  termios before_{};
  sigset_t mask_{};
  tools::UniqueFd signals_;
  bool entered_ = false;
  std::string typed_;  // and not handled yet
};

}  // namespace col::launch
