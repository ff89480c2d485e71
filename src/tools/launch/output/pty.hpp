// A pseudo-terminal for one rank.
#pragma once

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

}  // namespace col::launch
