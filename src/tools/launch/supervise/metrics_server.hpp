// Answers HTTP requests for /metrics, for colrun --metrics. It never blocks, and serves a few callers at a time, each
// for a short time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "launch/nodes/endpoint.hpp"
#include "launch/processes/events.hpp"
#include "launch/report/job_story.hpp"
#include "net/listener.hpp"
#include "net/output.hpp"

namespace col::launch {

class MetricsServer {
 public:
  using Time = core::Clock::time_point;
  using Answer = std::function<void(const std::string& text)>;
  // Makes the page, and calls `answer` then, at once or later, while the server lives.
  using Page = std::function<void(Answer answer)>;

  // Listens. Throws LaunchError (2) if it cannot listen there.
  MetricsServer(const Endpoint& at, Events& events, Page page);

  const Endpoint& endpoint() const noexcept { return endpoint_; }  // with the port that it has got
  // Callers that say nothing, or do not read, are left.
  void tick(Time now);
  std::optional<Time> deadline() const;

 private:
  static constexpr std::size_t kCallers = 8;
  static constexpr std::chrono::seconds kTime{5};

  struct Caller {
    tools::UniqueFd socket;
    int number = 0;  // others had this place before it
    bool has_asked = false;
    std::string request = {};
    net::Output answer = {};
    Time latest{};
  };

  void on_event(std::size_t index, Time now);
  void accept(Time now);
  void talk(Caller& caller);
  void answer(Caller& caller);
  static void write(Caller& caller);

  Endpoint endpoint_;
  EventSource events_;
  const Page page_;
  net::Listener listener_;
  std::array<Caller, kCallers> callers_;
  int next_ = 0;
};

// The ranks of a job and their work, in the text format of Prometheus. Requires: RankStory::last is from this moment.
std::string metrics_text(const JobStory& story);

}  // namespace col::launch
