// Moving the bytes. How a rank is connected is in output_connect.cpp.
#include "launch/output/output.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/clock/clock.hpp"
#include "launch/output/terminal.hpp"

namespace col::launch {

void Output::say(std::string_view line) {
  Outlet& err = *outlets_[console_of(Stream::err)];
  if (!err.broken) err.lines.feed(own_source_, std::string(line) + "\n", LineMux::Clock::now());
}

void Output::print(std::string_view text) {
  Outlet& out = *outlets_.front();
  if (!out.broken) out.lines.feed(print_source_, text, LineMux::Clock::now());
}

void Output::on_pipe(std::size_t index) {
  if (pipes_[index].ready || !pipes_[index].fd) return;
  pipes_[index].ready = true;
  ready_.push_back(index);
}

void Output::on_sink(std::size_t index) {
  Outlet* outlet = outlets_[index].get();
  if (outlet == nullptr || !outlet->blocked) return;
  sink_events_.remove(outlet->sink.fd());
  outlet->blocked = false;
}

void Output::copy_window_size() {
  for (const Pipe& pipe : pipes_) {
    if (!pipe.is_terminal || !pipe.fd) continue;
    for (int from : {wiring_.stderr_fd, wiring_.stdout_fd, wiring_.stdin_fd}) {
      launch::copy_window_size(from, pipe.fd.get());
    }
  }
}

bool Output::wants(const Pipe& pipe) const {
  return std::ranges::all_of(pipe.routes, [&](const Route& route) {
    return outlets_[route.outlet]->broken || outlets_[route.outlet]->lines.wants(route.source);
  });
}

bool Output::work(Time now) {
  std::size_t first_left = 0;
  bool all_served = true;
  for (std::size_t at = 0; at < ready_.size(); ++at) {
    Pipe& pipe = pipes_[ready_[at]];
    if (!pipe.fd) continue;
    if (wants(pipe)) {
      read(pipe, now);
    } else if (std::exchange(all_served, false)) {
      first_left = at;
    }
  }
  // A pipe that found no room is the first to get some.
  std::rotate(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(first_left), ready_.end());
  std::erase_if(ready_, [&](std::size_t index) { return !pipes_[index].ready; });
  for (std::size_t index = 0; index < outlets_.size(); ++index) {
    if (outlets_[index] == nullptr) continue;
    outlets_[index]->lines.tick(now);
    write(index);
  }
  return std::ranges::any_of(ready_, [&](std::size_t index) { return wants(pipes_[index]); });
}

void Output::read(Pipe& pipe, Time now) {
  const ssize_t length = ::read(pipe.fd.get(), buffer_.get(), kReadBytes);
  if (length <= 0) {
    if (length < 0 && errno == EAGAIN) {
      pipe.ready = false;
    } else if (length == 0 || errno != EINTR) {
      tools::UniqueFd ended = end(pipe, now);  // a terminal reports its end by an error
      // Its rank has closed it, but may still be about to exit: SIGHUP, which a closed terminal sends, would end it
      // first.
      if (pipe.is_terminal) silent_terminals_.push_back(std::move(ended));
    }
    return;
  }
  const std::string_view bytes(buffer_.get(), static_cast<std::size_t>(length));
  std::string_view stamp;
  if (spec_.timestamps && !pipe.is_raw) stamp = stamp_.text(core::wall_now());
  for (const Route& route : pipe.routes) {
    Outlet& outlet = *outlets_[route.outlet];
    if (!outlet.broken) outlet.lines.feed(route.source, bytes, now, stamp);
  }
  if (pipe.tail >= 0) ranks_[static_cast<std::size_t>(pipe.tail)].tail.feed(bytes);
}

// Returns the descriptor, for callers that want to keep it.
tools::UniqueFd Output::end(Pipe& pipe, Time now) {
  // A terminal's descriptor may have a twin, so closing this one would not end its events.
  pipe_events_.remove(pipe.fd.get());
  pipe.ready = false;
  --(pipe.is_raw ? open_raw_pipes_ : open_rank_pipes_);
  for (const Route& route : pipe.routes) outlets_[route.outlet]->lines.close(route.source, now);
  return std::move(pipe.fd);
}

void Output::write(std::size_t index) {
  Outlet& outlet = *outlets_[index];
  if (outlet.broken) outlet.lines.consume(outlet.lines.pending().size());
  if (outlet.blocked || outlet.lines.pending().empty()) return;
  const auto [written, error] = outlet.sink.write(outlet.lines.pending());
  outlet.lines.consume(written);
  if (error == 0) return;
  if (error != EAGAIN) return fail(index, error);
  if (!sink_events_.add(outlet.sink.fd(), EPOLLOUT, index)) return fail(index, errno);
  outlet.blocked = true;
}

void Output::fail(std::size_t index, int error) {
  Outlet& failed = *outlets_[index];
  failed.broken = true;
  failed.lines.consume(failed.lines.pending().size());
  const bool files_have_it = index < consoles_ && !spec_.file_pattern.empty();
  if (files_have_it && error == EPIPE) return;
  if (!cut_off_) {
    error_ = error;
    error_file_ = failed.path;
  }
  if (files_have_it) return;
  cut_off_ = true;
  const Time now = LineMux::Clock::now();
  const auto leads_here = [&](const Route& route) { return route.outlet == index; };
  for (Pipe& pipe : pipes_) {
    if (pipe.fd && std::ranges::any_of(pipe.routes, leads_here)) end(pipe, now);
  }
}

std::optional<Output::Time> Output::deadline() const {
  std::optional<Time> first;
  for (const auto& outlet : outlets_) {
    if (outlet == nullptr || outlet->broken) continue;
    const std::optional<Time> due = outlet->lines.deadline();
    if (due && (!first || *due < *first)) first = due;
  }
  return first;
}

bool Output::all_written() const {
  return std::ranges::all_of(
      outlets_, [](const auto& outlet) { return outlet == nullptr || outlet->broken || outlet->lines.is_drained(); });
}

void Output::give_up_rank_pipes(Time now) {
  for (Pipe& pipe : pipes_) {
    if (pipe.fd && !pipe.is_raw) end(pipe, now);
  }
}

void Output::give_up_pipes(Time now) {
  for (Pipe& pipe : pipes_) {
    if (pipe.fd) end(pipe, now);
  }
}

void Output::drop_unwritten() {
  for (std::size_t index = 0; index < outlets_.size(); ++index) {
    Outlet* outlet = outlets_[index].get();
    if (outlet == nullptr || (index >= consoles_ && !outlet->blocked)) continue;
    outlet->broken = true;
    outlet->lines.consume(outlet->lines.pending().size());
  }
}

}  // namespace col::launch
