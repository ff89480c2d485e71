#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "common/screen.hpp"

namespace col::tools {
namespace {

int columns_of_terminal(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// Terminals that call themselves dumb get no colour and no line that is overwritten.
bool is_clever_terminal(int fd) {
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

std::optional<std::size_t> stdout_columns() {
  if (::isatty(STDOUT_FILENO) != 1) return std::nullopt;
  return static_cast<std::size_t>(columns_of_terminal(STDOUT_FILENO));
}

Screen Screen::own() {
  Screen screen;
  std::setlocale(LC_CTYPE, "");
  screen.utf8 = std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
  screen.colour = is_clever_terminal(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
  if (is_clever_terminal(STDERR_FILENO)) {
    screen.progress_fd = STDERR_FILENO;
    screen.columns = columns_of_terminal(STDERR_FILENO);
  }
  return screen;
}

Style Screen::style() const {
  const auto of_terminal = stdout_columns();
  return {.utf8 = utf8, .colour = colour, .columns = of_terminal.value_or(0), .wraps = of_terminal.has_value()};
}

std::string Screen::text() const {
  return fmt::format("{}:{}:{}:{}:{}", progress_fd, columns, colour ? 1 : 0, utf8 ? 1 : 0, verdict_fd);
}

Screen Screen::parse(const std::string& text) {
  Screen screen;
  int is_coloured = 0, is_utf8 = 1;
  if (std::sscanf(text.c_str(), "%d:%d:%d:%d:%d", &screen.progress_fd, &screen.columns, &is_coloured, &is_utf8,
                  &screen.verdict_fd) != 5)
    return Screen::own();
  screen.colour = is_coloured != 0;
  screen.utf8 = is_utf8 != 0;
  return screen;
}

}  // namespace col::tools
