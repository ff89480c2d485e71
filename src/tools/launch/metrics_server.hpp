// Answers HTTP requests for /metrics, for colrun --metrics. It never blocks, and serves a few callers at a time, each
// for a short time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/unique_fd.hpp"
#include "launch/nodes/endpoint.hpp"

namespace col::launch {

class MetricsServer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Listens. Events come as `tag` | index. `text` makes the page. Throws LaunchError (2) if it cannot listen there.
  MetricsServer(const Endpoint& at, int epoll_fd, std::uint64_t tag, std::function<std::string()> text);

  const Endpoint& endpoint() const noexcept { return endpoint_; }  // with the port that it has got
  void on_event(std::size_t index, Time now);
  // Callers that say nothing, or do not read, are left.
  void tick(Time now);
  std::optional<Time> deadline() const;

 private:
  static constexpr std::size_t kCallers = 8;
  static constexpr std::chrono::seconds kTime{5};

  struct Caller {
    tools::UniqueFd socket;
    std::string request = {}, answer = {};
    std::size_t written = 0;
    Time latest{};
  };

  void accept(Time now);
  void talk(Caller& caller);
  std::string answer_to(const std::string& request) const;

  Endpoint endpoint_;
  const int epoll_fd_;
  const std::uint64_t tag_;
  const std::function<std::string()> text_;
  Listener listener_;
  std::array<Caller, kCallers> callers_;
};

}  // namespace col::launch
