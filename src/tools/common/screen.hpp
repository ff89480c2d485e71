// The terminal that a tool was started on, as its ranks know it.
#pragma once

#include <string>

namespace col::tools {

// How rank 0 shows what goes on, and where it leaves its verdict. The text of `--spawned`, when the tool started the
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

}  // namespace col::tools
