// colcheck inside a world of ranks: what its lead, rank 0, and the others do.
#pragma once

#include <string>

#include <col/group.hpp>

#include "colcheck/options.hpp"

namespace col::colcheck {

// How the lead shows what goes on, and where it leaves its verdict. The text of `--spawned`, when colcheck started the
// ranks itself.
struct Screen {
  int progress_fd = -1;  // a terminal, or none
  int columns = 80;
  bool colour = false;
  bool utf8 = true;
  // A pipe to the process that started the ranks. A verdict is no failure of the rank that has found it: through its
  // exit code the launcher would take it for one.
  int verdict_fd = -1;

  std::string text() const;
  static Screen parse(const std::string& text);
  // As this process's own stdout and stderr are.
  static Screen own();
};

// Runs what `options` ask for in the world that `context` is in, and returns the exit code: on the lead the verdict, on
// the others 0, since one word is enough for a launcher. `command` is for reports.
int run_world(Context& context, const Options& options, const Screen& screen, const std::string& command);

}  // namespace col::colcheck
