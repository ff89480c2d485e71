#include "launch/output.hpp"

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/launch_error.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;  // what a pipe holds

}  // namespace

Output::Output(int epoll_fd, std::uint64_t pipe_tag, std::uint64_t sink_tag, int stdout_fd, int stderr_fd)
    : epoll_fd_(epoll_fd), pipe_tag_(pipe_tag), sink_tag_(sink_tag), buffer_(kReadBytes, '\0') {
  sides_.push_back(std::make_unique<Side>(stdout_fd));
  if (!same_file(stdout_fd, stderr_fd)) sides_.push_back(std::make_unique<Side>(stderr_fd));
  Side& err = *sides_.back();
  err.own_source = err.lines.add_source("");
}

void Output::add(Stream stream, std::string label, tools::UniqueFd read_end) {
  Pipe pipe{.fd = std::move(read_end), .side = side_of(stream)};
  pipe.source = sides_[pipe.side]->lines.add_source(std::move(label));
  // Edge-triggered: a pipe that is not to be read now must not wake us again and again.
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = pipe_tag_ | pipes_.size();
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, pipe.fd.get(), &event) != 0) {
    throw LaunchError(tools::exit_code::kLauncher, fmt::format("cannot watch a rank's output: {}", strerror(errno)));
  }
  pipes_.push_back(std::move(pipe));
  ++open_pipes_;
}

void Output::say(std::string_view line) {
  Side& err = *sides_.back();
  err.lines.feed(err.own_source, std::string(line) + "\n", LineMux::Clock::now());
}

void Output::on_pipe(std::size_t index) {
  if (pipes_[index].ready || !pipes_[index].fd) return;
  pipes_[index].ready = true;
  ready_.push_back(index);
}

void Output::on_sink(std::size_t index) {
  Side& side = *sides_[index];
  if (!side.blocked) return;
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, side.sink.fd(), nullptr);
  side.blocked = false;
}

bool Output::work(Time now) {
  for (std::size_t index : ready_) {
    Pipe& pipe = pipes_[index];
    if (pipe.fd && sides_[pipe.side]->lines.wants(pipe.source)) read(pipe, now);
  }
  std::erase_if(ready_, [&](std::size_t index) { return !pipes_[index].ready; });
  for (std::size_t index = 0; index < sides_.size(); ++index) {
    sides_[index]->lines.tick(now);
    write(index);
  }
  return std::any_of(ready_.begin(), ready_.end(),
                     [&](std::size_t index) { return sides_[pipes_[index].side]->lines.wants(pipes_[index].source); });
}

void Output::read(Pipe& pipe, Time now) {
  const ssize_t length = ::read(pipe.fd.get(), buffer_.data(), buffer_.size());
  if (length > 0) {
    sides_[pipe.side]->lines.feed(pipe.source, std::string_view(buffer_.data(), static_cast<std::size_t>(length)), now);
  } else if (length < 0 && errno == EAGAIN) {
    pipe.ready = false;
  } else if (length == 0 || errno != EINTR) {
    end(pipe, now);
  }
}

void Output::end(Pipe& pipe, Time now) {
  pipe.fd.reset();
  pipe.ready = false;
  --open_pipes_;
  sides_[pipe.side]->lines.close(pipe.source, now);
}

void Output::write(std::size_t index) {
  Side& side = *sides_[index];
  if (side.broken) side.lines.consume(side.lines.pending().size());
  if (side.blocked || side.lines.pending().empty()) return;
  const auto [written, error] = side.sink.write(side.lines.pending());
  side.lines.consume(written);
  if (error == 0) return;
  if (error != EAGAIN) return fail(index, error);
  epoll_event event{};
  event.events = EPOLLOUT;
  event.data.u64 = sink_tag_ | index;
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, side.sink.fd(), &event) != 0) return fail(index, errno);
  side.blocked = true;
}

void Output::fail(std::size_t index, int error) {
  if (error_ == 0) error_ = error;
  sides_[index]->broken = true;
  const Time now = LineMux::Clock::now();
  for (Pipe& pipe : pipes_) {
    if (pipe.side == index && pipe.fd) end(pipe, now);
  }
  sides_[index]->lines.consume(sides_[index]->lines.pending().size());
}

std::optional<Output::Time> Output::deadline() const {
  std::optional<Time> first;
  for (const auto& side : sides_) {
    const std::optional<Time> due = side->lines.deadline();
    if (due && (!first || *due < *first)) first = due;
  }
  return first;
}

bool Output::all_written() const {
  return std::all_of(sides_.begin(), sides_.end(), [](const auto& side) { return side->lines.pending().empty(); });
}

void Output::give_up_pipes(Time now) {
  for (Pipe& pipe : pipes_) {
    if (pipe.fd) end(pipe, now);
  }
}

void Output::drop_unwritten() {
  for (const auto& side : sides_) {
    side->broken = true;
    side->lines.consume(side->lines.pending().size());
  }
}

}  // namespace col::launch
