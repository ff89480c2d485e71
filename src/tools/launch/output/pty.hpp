// A pseudo-terminal for one rank.
#pragma once

#include "common/unique_fd.hpp"

namespace col::launch {

struct Pty {
  tools::UniqueFd master;  // ours, non-blocking
  tools::UniqueFd slave;   // the rank's; not yet anybody's controlling terminal
};

// What the rank writes comes out unchanged: no "\n" becomes "\r\n". `echo`: what is typed shows, as it has to when a
// person types. Throws LaunchError (125) when the system has no more.
Pty make_pty(bool echo);

// Gives the terminal behind `to` the window size of the one behind `from`. When it differs, the kernel tells the
// programs on it by SIGWINCH. Does nothing when `from` is no terminal.
void copy_window_size(int from, int to);

}  // namespace col::launch
