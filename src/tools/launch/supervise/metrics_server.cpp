#include "launch/supervise/metrics_server.hpp"

#include <string.h>
#include <sys/epoll.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "net/stream.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kMaxRequest = 8192;

std::string response(std::string_view status, std::string_view kind, std::string_view body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     kind, body.size(), body);
}

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

}  // namespace col::launch
