#include "launch/output/input.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/events.hpp"

namespace col::launch {
namespace {

constexpr int kBlocksAtOnce = 16;  // then others have a turn

// What a person types to end the input. Mid-line, the first one only ends the line.
std::string end_of_input(int terminal, bool mid_line) {
  termios settings{};
  const bool known = ::tcgetattr(terminal, &settings) == 0;
  return std::string(mid_line ? 2 : 1, known ? static_cast<char>(settings.c_cc[VEOF]) : '\x04');
}

}  // namespace

InputSource::InputSource(int user_fd, EventSource& events) : events_(events) {
  struct stat info {};
  if (user_fd < 0 || ::fstat(user_fd, &info) != 0) return;
  if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)) {
    const std::string path = fmt::format("/proc/self/fd/{}", user_fd);
    fd_.reset(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  if (!fd_) {
    fd_.reset(::fcntl(user_fd, F_DUPFD_CLOEXEC, 3));
    is_socket_ = S_ISSOCK(info.st_mode);
    may_block_ = !is_socket_ && !S_ISREG(info.st_mode) && !S_ISBLK(info.st_mode);
  }
  // Refuses files and /dev/null, which always have something to say, if only that they are at their end.
  events_.add(fd_.get(), EPOLLIN | EPOLLET);
}

InputSource::Outcome InputSource::read(std::span<char> buffer) {
  using enum Outcome::State;
  if (!fd_) return {0, ended};
  if (may_block_) {
    pollfd some{fd_.get(), POLLIN, 0};
    if (core::poll_for({&some, 1}, Duration::zero()) == 0) return {0, empty};
  }
  const ssize_t length = is_socket_ ? ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)
                                    : ::read(fd_.get(), buffer.data(), buffer.size());
  if (length > 0) return {static_cast<std::size_t>(length), more};
  if (length < 0 && errno == EAGAIN) return {0, empty};
  if (length < 0 && errno == EINTR) return {0, more};
  return {0, ended};  // a terminal that was hung up reports an error
}

void InputSource::close() {
  if (fd_) events_.remove(fd_.get());
  fd_.reset();
}

Input::Input(Events& events, int stdin_fd)
    : events_(events, [this](std::size_t index) { on_event(index); }),
      terminal_(stdin_fd),
      source_(stdin_fd, events_),
      buffer_(kBlock, '\0') {}

tools::UniqueFd Input::add_pipe() {
  PipeEnds pipe = make_input_pipe();
  add(std::move(pipe.write), false);
  return std::move(pipe.read);
}

void Input::add_terminal(tools::UniqueFd keyboard) {
  add(std::move(keyboard), true);
}

void Input::add(tools::UniqueFd fd, bool is_terminal) {
  if (!events_.add(fd.get(), EPOLLOUT | EPOLLET, readers_.size() + 1)) {
    throw LaunchError(tools::exit_code::kLauncher, "cannot watch a rank's input: {}", strerror(errno));
  }
  readers_.push_back({.fd = std::move(fd), .is_terminal = is_terminal});
}

void Input::start() {
  started_ = true;
  resume();
}

void Input::on_event(std::size_t index) {
  if (index == 0) {
    source_ready_ = true;
    return;
  }
  Reader& reader = readers_[index - 1];
  reader.ready = true;
  pollfd state{reader.fd.get(), POLLOUT, 0};
  if (reader.fd && core::poll_for({&state, 1}, Duration::zero()) == 1 && (state.revents & (POLLERR | POLLHUP)) != 0)
    drop(reader);
}

bool Input::work() {
  if (!started_ || suspended_) return false;
  for (int block = 0; block < kBlocksAtOnce; ++block) {
    for (Reader& reader : readers_) write(reader);
    if (!all_have_block()) return false;
    if (!keeps_reading_ && std::ranges::none_of(readers_, [](const Reader& reader) { return bool(reader.fd); })) {
      close();
      return false;
    }
    if (ended_ || !source_ready_) return false;
    if (!read()) return false;
  }
  return true;
}

// Returns whether there is something new to write.
bool Input::read() {
  const auto [bytes, state] = source_.read(buffer_);
  source_ready_ = state == InputSource::Outcome::State::more;
  if (bytes > 0) {
    block_.assign(buffer_, 0, bytes);
    last_byte_ = block_.back();
    for (Reader& reader : readers_) reader.written = 0;
  }
  if (state == InputSource::Outcome::State::ended) on_end();
  return state != InputSource::Outcome::State::empty;
}

void Input::on_end() {
  ended_ = true;
  block_.clear();
  source_.close();
  terminal_.leave();
  for (Reader& reader : readers_) {
    reader.written = 0;
    if (!reader.is_terminal) drop(reader);
    if (reader.fd) block_ = end_of_input(reader.fd.get(), last_byte_ != '\n');
  }
}

void Input::write(Reader& reader) {
  while (reader.fd && reader.ready && reader.written < block_.size()) {
    const ssize_t written = ::write(reader.fd.get(), block_.data() + reader.written, block_.size() - reader.written);
    if (written >= 0) {
      reader.written += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN) {
      reader.ready = false;
    } else if (errno != EINTR) {
      drop(reader);
    }
  }
}

bool Input::all_have_block() const {
  return std::ranges::all_of(readers_,
                             [&](const Reader& reader) { return !reader.fd || reader.written == block_.size(); });
}

void Input::drop(Reader& reader) {
  // A terminal's descriptor has a twin, so closing this one would not end its events.
  if (reader.fd) events_.remove(reader.fd.get());
  reader.fd.reset();
}

void Input::on_reader_end(std::size_t reader) {
  drop(readers_[reader]);
}

void Input::suspend() {
  suspended_ = true;
  terminal_.leave();
}

void Input::resume() {
  suspended_ = false;
  const auto is_terminal = [](const Reader& reader) { return reader.fd && reader.is_terminal; };
  if (started_ && !ended_ && std::ranges::any_of(readers_, is_terminal)) terminal_.enter();
}

void Input::close() {
  ended_ = true;
  source_.close();
  for (Reader& reader : readers_) drop(reader);
  terminal_.leave();
}

}  // namespace col::launch
