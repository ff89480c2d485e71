// The terminal on which a tool was started, as its ranks know it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/style.hpp"

namespace col::tools {

// How rank 0 shows progress, and where it leaves its verdict. It is passed as the text after `--spawned` if the tool
// has started the ranks itself.
struct Screen {
  int progress_fd = -1;  // a terminal; -1: none
  int columns = 80;
  bool colour = false;
  bool utf8 = true;
  // A pipe to the process that started the ranks. A rank that finds a bad verdict has not failed itself; but if its
  // exit code were the verdict, the launcher would treat it as a failure.
  int verdict_fd = -1;

  std::string text() const;
  static Screen parse(const std::string& text);
  // From this process's own stdout and stderr.
  static Screen own();
  // For reports on this process's own stdout: as wide as that is, if it is a terminal.
  Style style() const;
};

// How wide this process's own stdout is; nothing if it is no terminal.
std::optional<std::size_t> stdout_columns();

}  // namespace col::tools
