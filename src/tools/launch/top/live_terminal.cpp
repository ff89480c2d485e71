#include "launch/top/live_terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <system_error>

#include "core/clock/clock.hpp"
#include "launch/processes/signals.hpp"

namespace col::launch {
namespace {

constexpr std::array<int, 8> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH, SIGPIPE};

// What every terminal since the VT100 and every xterm understands.
constexpr std::string_view kOtherScreen = "\x1b[?1049h", kOwnScreen = "\x1b[?1049l";
constexpr std::string_view kHideCursor = "\x1b[?25l", kShowCursor = "\x1b[?25h";
constexpr std::string_view kHome = "\x1b[H", kRestOfLine = "\x1b[K", kRestOfScreen = "\x1b[J";

constexpr char kEscape = '\x1b';

constexpr std::chrono::seconds kPatience{1};  // with a terminal that takes nothing

// A terminal that has gone is noticed when a key is awaited.
void write_text(std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EAGAIN) {
      pollfd writable{STDOUT_FILENO, POLLOUT, 0};
      if (core::poll_for({&writable, 1}, kPatience) <= 0) return;
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

bool is_live_terminal() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && term != nullptr && *term != '\0' &&
         std::string_view(term) != "dumb";
}

void restore_terminal(const termios& before) {
  write_text(std::string(kShowCursor) + std::string(kOwnScreen));
  // From the background, this would stop the process.
  sigset_t output, mask;
  sigemptyset(&output);
  sigaddset(&output, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &output, &mask);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

LiveTerminal::LiveTerminal() {
  if (::tcgetattr(STDIN_FILENO, &before_) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot use the terminal");
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : kSignals) sigaddset(&awaited, signal);
  ::pthread_sigmask(SIG_BLOCK, &awaited, &mask_);
  signals_.reset(::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) {
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    throw std::system_error(error, std::generic_category(), "cannot wait for signals");
  }
  enter();
}

LiveTerminal::~LiveTerminal() {
  leave();
  ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

void LiveTerminal::take_keys() {
  termios keys = before_;
  // ^C and ^Z still are signals.
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  keys.c_cc[VMIN] = 1;
  keys.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
}

void LiveTerminal::enter() {
  take_keys();
  write_text(std::string(kOtherScreen) + std::string(kHideCursor));
  entered_ = true;
}

void LiveTerminal::leave() {
  if (!entered_) return;
  entered_ = false;
  restore_terminal(before_);
}

LiveTerminal::Size LiveTerminal::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

void LiveTerminal::show(const std::vector<std::string>& lines) {
  std::string text(kHome);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += lines[i];
    text += kRestOfLine;
    if (i + 1 < lines.size()) text += "\r\n";
  }
  text += kRestOfScreen;
  write_text(text);
}

LiveTerminal::Event LiveTerminal::next(Clock::time_point latest, int other) {
  for (;;) {
    if (const char key = take_key(); key != 0) return {.kind = Event::Kind::key, .key = key};
    pollfd events[] = {{STDIN_FILENO, POLLIN, 0}, {signals_.get(), POLLIN, 0}, {other, POLLIN, 0}};
    const int ready = core::poll_for(events, latest - Clock::now());
    if (ready == 0) return {};
    if (ready < 0) continue;  // EINTR
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      switch (signal) {
        case SIGWINCH:
          return {.kind = Event::Kind::resized};
        case SIGTSTP:
          leave();
          stop_self();
          enter();
          return {.kind = Event::Kind::resized};
        case SIGCONT:  // after SIGSTOP: a shell may have changed the terminal meanwhile
          take_keys();
          return {.kind = Event::Kind::resized};
        case SIGPIPE:
          return {.kind = Event::Kind::gone};
        default:
          return {.kind = Event::Kind::signal, .signal = signal};
      }
    }
    if (events[0].revents == 0 && events[2].revents != 0) return {.kind = Event::Kind::readable};
    if (events[0].revents == 0) continue;
    if ((events[0].revents & POLLIN) == 0) return {.kind = Event::Kind::gone};
    std::array<char, 64> typed{};
    const ssize_t count = ::read(STDIN_FILENO, typed.data(), typed.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) return {.kind = Event::Kind::gone};
    typed_.append(typed.data(), static_cast<std::size_t>(count));
  }
}

// 0: there is none. An arrow, or the like, is nothing here: ESC [ or ESC O, numbers, and a letter.
char LiveTerminal::take_key() {
  while (!typed_.empty()) {
    const char key = typed_.front();
    std::size_t length = 1;
    if (key == kEscape && typed_.size() > 1 && (typed_[1] == '[' || typed_[1] == 'O')) {
      length = 2;
      while (length < typed_.size() && typed_[length] < '@') ++length;
      length = std::min(length + 1, typed_.size());
    }
    typed_.erase(0, length);
    if (key != kEscape && key != 0) return key;
  }
  return 0;
}

}  // namespace col::launch
