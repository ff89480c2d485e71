#include "colcheck/crash_note.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

namespace col::colcheck {
namespace {

// Written before a case, read by the handler: both in one process, and a mixed text does no harm.
std::array<char, 64> opening{};
std::array<char, 512> current{};

void put(const char* text) {
  const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);  // nothing can be done about it here
}

void on_fatal(int signal) {
  put(opening.data());
  put(current.data());
  put("'\n");
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void install_crash_note(int rank) {
  const std::string text = fmt::format("colcheck: rank {} crashed; run: colcheck --repro '", rank);
  std::copy_n(text.data(), std::min(text.size(), opening.size() - 1), opening.data());
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction action {};
    action.sa_handler = &on_fatal;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

void note_case(std::string_view token) noexcept {
  const std::size_t length = std::min(token.size(), current.size() - 1);
  std::copy_n(token.data(), length, current.data());
  current[length] = '\0';
}

}  // namespace col::colcheck
