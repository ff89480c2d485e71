#include "colbench/commands/print.hpp"

#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>

#include "common/write_file.hpp"

namespace col::colbench {

void print(const std::string& text) {
  ::signal(SIGPIPE, SIG_IGN);  // the reader may leave; that is an error with a text
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
  throw OutputClosed(fmt::format("cannot write to stdout: {}", std::generic_category().message(errno)));
}

void print_error(const std::string& text) {
  std::fputs(text.c_str(), stderr);
}

}  // namespace col::colbench
