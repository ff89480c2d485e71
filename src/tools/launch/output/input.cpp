#include "launch/output/input.hpp"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/descriptors.hpp"

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

Input::Input(int epoll_fd, std::uint64_t tag, int stdin_fd)
    : epoll_fd_(epoll_fd), tag_(tag), terminal_(stdin_fd), source_(stdin_fd, epoll_fd, tag), buffer_(kBlock, '\0') {}

tools::UniqueFd Input::add_pipe() {
  PipeEnds pipe = make_input_pipe();
  add(std::move(pipe.write), false);
  return std::move(pipe.read);
}

void Input::add_terminal(tools::UniqueFd keyboard) {
  add(std::move(keyboard), true);
}

void Input::add(tools::UniqueFd fd, bool is_terminal) {
  epoll_event interest{};
  interest.events = EPOLLOUT | EPOLLET;
  interest.data.u64 = tag_ | (readers_.size() + 1);
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd.get(), &interest) != 0) {
    throw LaunchError(tools::exit_code::kLauncher, fmt::format("cannot watch a rank's input: {}", strerror(errno)));
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
  if (reader.fd && ::poll(&state, 1, 0) == 1 && (state.revents & (POLLERR | POLLHUP)) != 0) drop(reader);
}

bool Input::work() {
  if (!started_ || suspended_) return false;
  for (int block = 0; block < kBlocksAtOnce; ++block) {
    for (Reader& reader : readers_) write(reader);
    if (!all_have_block()) return false;
    if (!keeps_reading_ &&
        std::none_of(readers_.begin(), readers_.end(), [](const Reader& reader) { return bool(reader.fd); })) {
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
  return std::all_of(readers_.begin(), readers_.end(),
                     [&](const Reader& reader) { return !reader.fd || reader.written == block_.size(); });
}

void Input::drop(Reader& reader) {
  // A terminal's descriptor has a twin, so closing this one would not end its events.
  if (reader.fd) ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, reader.fd.get(), nullptr);
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
  if (started_ && !ended_ && std::any_of(readers_.begin(), readers_.end(), is_terminal)) terminal_.enter();
}

void Input::close() {
  ended_ = true;
  source_.close();
  for (Reader& reader : readers_) drop(reader);
  terminal_.leave();
}

}  // namespace col::launch
