// How a rank's output is connected: to pipes of ours, a pseudo-terminal, a file or nothing.
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/output/output.hpp"
#include "launch/output/terminal.hpp"
#include "launch/processes/events.hpp"

namespace col::launch {
namespace {

using tools::UniqueFd;

constexpr std::size_t kAllTails = 8 * 1024 * 1024;

std::size_t tail_bytes(int ranks) {
  return std::clamp(kAllTails / static_cast<std::size_t>(ranks), LineTail::kLineBytes,
                    LineTail::kLines * LineTail::kLineBytes);
}

UniqueFd duplicate(int fd) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy) {
    throw LaunchError(tools::exit_code::kLauncher, "cannot duplicate a descriptor: {}; use fewer ranks",
                      strerror(errno));
  }
  return copy;
}

// Whether no two ranks of a node have the same name by this pattern.
bool differs_by_rank(const std::string& pattern) {
  return expand_pattern(pattern, {.rank = 0, .local_rank = 0, .world_size = 2}) !=
         expand_pattern(pattern, {.rank = 1, .local_rank = 1, .world_size = 2});
}

bool has_file_per_rank(const OutputSpec& spec, int ranks) {
  return ranks == 1 || differs_by_rank(spec.file_pattern);
}

// Ranks that share a file would cut each other's lines.
bool writes_directly(const OutputSpec& spec, int ranks) {
  return !spec.file_pattern.empty() && has_file_per_rank(spec, ranks) && spec.label.empty() && !spec.timestamps &&
         !spec.tee && !spec.pty;
}

}  // namespace

int Output::files_per_rank(const OutputSpec& spec, int ranks) {
  if (writes_directly(spec, ranks)) return 0;
  const int streams = spec.merge || spec.pty ? 1 : 2;
  return spec.file_pattern.empty() ? streams : 2 * streams;
}

Output::Output(Events& events, const Wiring& wiring, const OutputSpec& spec)
    : pipe_events_(events, [this](std::size_t index) { on_pipe(index); }),
      sink_events_(events, [this](std::size_t index) { on_sink(index); }),
      wiring_(wiring),
      spec_(spec),
      buffer_(std::make_unique_for_overwrite<char[]>(kReadBytes)) {
  file_per_rank_ = has_file_per_rank(spec, wiring.ranks);
  direct_ = writes_directly(spec, wiring.ranks);
  const auto add_console = [&](int fd, const char* name, Unfinished unfinished) {
    outlets_.push_back(std::make_unique<Outlet>(
        Sink(fd), name,
        LineMux::Options{.unfinished = unfinished, .ends_lines = spec.joined && unfinished == Unfinished::held}));
  };
  add_console(wiring.stdout_fd, "stdout", spec.out);
  if (!same_file(wiring.stdout_fd, wiring.stderr_fd)) add_console(wiring.stderr_fd, "stderr", spec.err);
  consoles_ = outlets_.size();
  own_source_ = outlets_.back()->lines.add_source("");
  print_source_ = outlets_.front()->lines.add_source("");
}

bool Output::shows(int rank) const {
  return spec_.console_ranks.empty() ||
         std::binary_search(spec_.console_ranks.begin(), spec_.console_ranks.end(), rank);
}

ChildStreams Output::add_rank(const RankNames& names, bool takes_input) {
  const auto place = static_cast<std::size_t>(names.local_rank);
  while (ranks_.size() <= place) ranks_.push_back({.tail = LineTail(tail_bytes(wiring_.ranks))});
  ranks_[place] = {.tail = LineTail(tail_bytes(wiring_.ranks))};
  return spec_.pty ? connect_terminal(names, takes_input) : connect_pipes(names);
}

ChildStreams Output::connect_terminal(const RankNames& names, bool takes_input) {
  // Without a person at the keyboard an echo would only be mistaken for the rank's own words.
  Pty pty = make_pty(takes_input && ::isatty(wiring_.stdin_fd) == 1);
  ChildStreams streams{.out = std::move(pty.slave), .is_terminal = true};
  if (takes_input) streams.keyboard = duplicate(pty.master.get());
  add_pipe({.fd = std::move(pty.master),
            .routes = routes_of(names, Stream::out, file_of(names, Stream::out)),
            .tail = names.local_rank,
            .is_terminal = true});
  copy_window_size();
  return streams;
}

ChildStreams Output::connect_pipes(const RankNames& names) {
  ChildStreams streams;
  const std::string out = file_of(names, Stream::out);
  const std::string err = file_of(names, Stream::err);
  const bool joined = spec_.merge || (direct_ && out == err);
  streams.out = connect(names, Stream::out, out, joined);
  if (!joined) streams.err = connect(names, Stream::err, err, true);
  return streams;
}

std::string Output::file_of(const RankNames& names, Stream stream) const {
  return expand_pattern(spec_.file_pattern, names, stream == Stream::out ? "out" : "err");
}

UniqueFd Output::connect(const RankNames& names, Stream stream, const std::string& path, bool keep_tail) {
  if (direct_) return open_directly(names, path, keep_tail);
  std::vector<Route> routes = routes_of(names, stream, path);
  if (routes.empty() && !keep_tail) {
    UniqueFd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (nothing) return nothing;
  }
  PipeEnds pipe = make_output_pipe();
  add_pipe({.fd = std::move(pipe.read), .routes = std::move(routes), .tail = keep_tail ? names.local_rank : -1});
  return std::move(pipe.write);
}

UniqueFd Output::open_directly(const RankNames& names, const std::string& path, bool keep_tail) {
  OutputFiles::File file = files_.open(path, names.restart > 0);
  ::fcntl(file.fd.get(), F_SETFL, O_APPEND);  // blocking, as a program expects it
  if (keep_tail) {
    RankOutput& rank = ranks_[static_cast<std::size_t>(names.local_rank)];
    rank.stderr_file = path;
    rank.stderr_start = file.size;
  }
  return std::move(file.fd);
}

std::vector<Output::Route> Output::routes_of(const RankNames& names, Stream stream, const std::string& path) {
  std::vector<std::size_t> outlets;
  if (!path.empty()) outlets.push_back(file_outlet(names, path));
  if ((path.empty() || spec_.tee) && shows(names.rank)) outlets.push_back(console_of(stream));
  const std::string label = expand_pattern(spec_.label, names, stream == Stream::out ? "out" : "err");
  std::vector<Route> routes;
  for (std::size_t outlet : outlets) {
    routes.push_back({.outlet = outlet, .source = outlets_[outlet]->lines.add_source(label)});
  }
  return routes;
}

std::size_t Output::file_outlet(const RankNames& names, const std::string& path) {
  const auto [entry, is_new] = file_outlets_.try_emplace(path, 0);
  if (!is_new) return entry->second;
  OutputFiles::File file = files_.open(path, names.restart > 0);
  const bool one_source =
      file_per_rank_ && (spec_.merge || spec_.pty || file_of(names, Stream::out) != file_of(names, Stream::err));
  // Files never stall, so all they need to hold are the lines that are not yet ended.
  const LineMux::Options options{.unfinished = one_source ? Unfinished::passed : unfinished_at(file.fd.get()),
                                 .max_held = LineMux::kMaxHeld,
                                 .kept = 0};
  const auto free = std::find(outlets_.begin(), outlets_.end(), nullptr);
  entry->second = static_cast<std::size_t>(free - outlets_.begin());
  auto outlet = std::make_unique<Outlet>(Sink(std::move(file.fd)), path, options);
  if (free == outlets_.end()) {
    outlets_.push_back(std::move(outlet));
  } else {
    *free = std::move(outlet);
  }
  return entry->second;
}

void Output::add_raw(Stream stream, UniqueFd read_end) {
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  const std::size_t outlet = console_of(stream);
  const int source = outlets_[outlet]->lines.add_source("");
  add_pipe({.fd = std::move(read_end), .routes = {{.outlet = outlet, .source = source}}, .is_raw = true});
}

void Output::add_pipe(Pipe pipe) {
  const auto unused = std::ranges::find_if(pipes_, [](const Pipe& old) { return old.unused; });
  const auto index = static_cast<std::size_t>(unused - pipes_.begin());
  // Edge-triggered: a pipe that is not to be read now must not wake us again and again.
  if (!pipe_events_.add(pipe.fd.get(), EPOLLIN | EPOLLET, index)) {
    throw LaunchError(tools::exit_code::kLauncher, "cannot watch a rank's output: {}", strerror(errno));
  }
  ++(pipe.is_raw ? open_raw_pipes_ : open_rank_pipes_);
  if (unused == pipes_.end()) {
    pipes_.push_back(std::move(pipe));
  } else {
    *unused = std::move(pipe);
  }
}

std::vector<std::string> Output::last_stderr(std::size_t place) const {
  const RankOutput& output = ranks_[place];
  if (output.stderr_file.empty()) return output.tail.lines();
  return last_lines_of_file(output.stderr_file, output.stderr_start);
}

void Output::forget_ranks(Time now) {
  give_up_rank_pipes(now);
  for (Pipe& pipe : pipes_) {
    if (pipe.is_raw || pipe.unused) continue;
    for (const Route& route : pipe.routes) outlets_[route.outlet]->lines.forget(route.source);
    pipe = {.unused = true};
  }
  std::erase_if(file_outlets_, [&](const auto& entry) {
    std::unique_ptr<Outlet>& outlet = outlets_[entry.second];
    if (!outlet->broken && !outlet->lines.is_drained()) return false;
    on_sink(entry.second);
    outlet.reset();
    return true;
  });
  silent_terminals_.clear();
  ranks_.clear();
  std::erase_if(ready_, [&](std::size_t index) { return !pipes_[index].ready; });
}

}  // namespace col::launch
