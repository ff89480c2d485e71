#include "launch/supervise/metrics_server.hpp"

#include <string.h>
#include <sys/epoll.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/text.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/report/wait_graph.hpp"
#include "launch/report/why.hpp"
#include "net/stream.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kMaxRequest = 8192;

std::string response(std::string_view status, std::string_view kind, std::string_view body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     kind, body.size(), body);
}

// A label's value, with its quotes.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char letter : tools::clean(std::string(text))) {
    if (letter == '\n') {
      out += "\\n";
      continue;
    }
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + '"';
}

class Page {
 public:
  void metric(std::string_view name, std::string_view kind, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, kind);
  }
  template <class Value>
  void value(const Value& value, std::string_view labels = {}) {
    const std::string braced = labels.empty() ? std::string() : fmt::format("{{{}}}", labels);
    fmt::format_to(std::back_inserter(text_), "{}{} {}\n", name_, braced, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

}  // namespace

MetricsServer::MetricsServer(const Endpoint& at, Events& events, Page page)
    : endpoint_(at),
      events_(events, [this](std::size_t index) { on_event(index, core::Clock::now()); }),
      page_(std::move(page)),
      listener_(net::listen_on({at.host == "*" ? std::string() : at.host}, at.port)) {
  if (listener_.sockets.empty())
    throw LaunchError(tools::exit_code::kUsage,
                      "--metrics: cannot listen at {}: {}; name an address of this host in digits, and a free port",
                      at.text(), strerror(listener_.error));
  endpoint_.port = listener_.port;
  // A listener's index is behind those of callers.
  for (std::size_t i = 0; i < listener_.sockets.size(); ++i)
    events_.add_readable(listener_.sockets[i].get(), kCallers + i);
}

void MetricsServer::on_event(std::size_t index, Time now) {
  if (index >= kCallers) return accept(now);
  if (callers_[index].socket) talk(callers_[index]);
}

void MetricsServer::accept(Time now) {
  for (const tools::UniqueFd& listening : listener_.sockets) {
    for (;;) {
      tools::UniqueFd socket = net::accept(listening.get());
      if (!socket) break;
      const auto free = std::ranges::find_if(callers_, [](const Caller& caller) { return !caller.socket; });
      if (free == callers_.end()) continue;  // it may call again
      const auto index = static_cast<std::size_t>(free - callers_.begin());
      if (!events_.add(socket.get(), EPOLLIN | EPOLLOUT | EPOLLET, index)) continue;
      *free = {.socket = std::move(socket), .number = next_++, .latest = now + kTime};
      talk(*free);
    }
  }
}

void MetricsServer::talk(Caller& caller) {
  std::array<char, 2048> buffer;
  while (!caller.has_asked) {
    const net::Moved moved = net::receive(caller.socket.get(), buffer);
    if (moved.has_ended) return caller.socket.reset();
    if (moved.bytes == 0) return;
    caller.request.append(buffer.data(), moved.bytes);
    caller.has_asked = caller.request.find("\r\n\r\n") != std::string::npos || caller.request.size() > kMaxRequest;
    if (caller.has_asked) answer(caller);
  }
  write(caller);
}

void MetricsServer::write(Caller& caller) {
  if (caller.answer.empty()) return;
  while (!caller.answer.empty()) {
    const net::Moved moved = net::send(caller.socket.get(), caller.answer);
    if (moved.has_ended) break;
    if (moved.bytes == 0) return;
    caller.answer.drop_front(moved.bytes);
  }
  caller.socket.reset();
}

void MetricsServer::answer(Caller& caller) {
  constexpr std::string_view kPlain = "text/plain; charset=utf-8";
  const std::string& request = caller.request;
  const auto refuse = [&](std::string_view status, std::string_view why) {
    caller.answer.add(response(status, kPlain, why));
  };
  if (request.size() > kMaxRequest) return refuse("431 Request Header Fields Too Large", "too long\n");
  if (!request.starts_with("GET ")) return refuse("405 Method Not Allowed", "only GET\n");
  const std::string_view target = std::string_view(request).substr(4, request.find_first_of(" \r", 4) - 4);
  if (target.substr(0, target.find('?')) != "/metrics") return refuse("404 Not Found", "the page is /metrics\n");
  page_([this, number = caller.number](const std::string& text) {
    const auto found = std::ranges::find(callers_, number, &Caller::number);
    if (found == callers_.end() || !found->socket) return;  // it has not waited
    found->answer.add(response("200 OK", "text/plain; version=0.0.4; charset=utf-8", text));
    write(*found);
  });
}

void MetricsServer::tick(Time now) {
  for (Caller& caller : callers_) {
    if (caller.socket && now >= caller.latest) caller.socket.reset();
  }
}

std::optional<MetricsServer::Time> MetricsServer::deadline() const {
  std::optional<Time> first;
  for (const Caller& caller : callers_) {
    if (caller.socket && (!first || caller.latest < *first)) first = caller.latest;
  }
  return first;
}

std::string metrics_text(const JobStory& story) {
  Page page;
  const auto labels_of = [&](const RankStory& rank) {
    const std::string host = story.nodes > 1 ? fmt::format(",host={}", in_quotes(rank.host)) : "";
    return fmt::format("rank=\"{}\"{}", rank.rank, host);
  };
  const WaitGraph graph(story);
  page.metric("col_job_info", "gauge", "The job that this page is about.");
  page.value(
      1, fmt::format("job={},command={}", in_quotes(story.job_id), in_quotes(tools::shell_line(story.command_line))));
  page.metric("col_job_seconds", "gauge", "Time since the job began.");
  page.value(story.seconds);
  page.metric("col_job_restarts_total", "counter", "How often all ranks were started again.");
  page.value(story.restarts);

  std::map<std::string, int> states;
  int failed = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const RankStory& rank = graph.rank(i);
    ++states[std::string(state_of_rank(graph, i))];
    failed += rank.status.exited && rank.status.wait_status != 0 ? 1 : 0;
  }
  page.metric("col_ranks", "gauge", "Ranks by what they do.");
  for (const auto& [state, count] : states) page.value(count, fmt::format("state={}", in_quotes(state)));
  page.metric("col_ranks_failed", "gauge", "Ranks that have failed since the last start.");
  page.value(failed);

  page.metric("col_hosts_silent", "gauge", "Hosts that have not answered: their ranks are not on this page.");
  page.value(story.silent.size());

  page.metric("col_group_calls_total", "counter", "Collectives of a rank in a group.");
  for (const RankStory& rank : story.ranks) {
    for (const RecordedGroup& group : rank.history.groups)
      page.value(group.last, fmt::format("group={},{}", in_quotes(group.name), labels_of(rank)));
  }
  page.metric("col_rank_waiting_seconds", "gauge", "How long a rank has waited in its call; only ranks that wait.");
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (!graph.waits(i)) continue;
    const RankActivity& call = *graph.rank(i).last;
    page.value(graph.since(i),
               fmt::format("group={},call={},{}", in_quotes(call.group), in_quotes(call.op), labels_of(graph.rank(i))));
  }
  const Why found = why(story);
  page.metric("col_held_up_seconds", "gauge",
              "How long ranks have waited for the one that holds them up; see coljob why.");
  page.value(found.cause == Why::Cause::nothing ? 0.0 : found.seconds,
             fmt::format("cause={}", in_quotes(to_string(found.cause))));
  return page.take();
}

}  // namespace col::launch
