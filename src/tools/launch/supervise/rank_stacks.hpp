// The stacks of this node's ranks, taken while everything else goes on.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>
#include <vector>

#include "launch/processes/events.hpp"
#include "launch/report/stacks.hpp"

namespace col::launch {

class RankStacks {
 public:
  using Time = StackTaker::Clock::time_point;
  using Stacks = std::vector<std::pair<pid_t, std::optional<Stack>>>;

  // Events only wake: work() looks after everything.
  explicit RankStacks(Events& events) : events_(events, [](std::size_t) {}) {}

  // Throws what StackTaker throws, and LaunchError.
  void begin(std::vector<pid_t> pids, Time until, const StackTaker::Options& options = {}) {
    pids_ = std::move(pids);
    taker_.emplace(pids_, until, options);
    events_.add_readable(taker_->fd());
  }
  void stop() { taker_.reset(); }
  bool is_taking() const { return taker_.has_value(); }
  std::optional<Time> deadline() const { return taker_ ? taker_->deadline() : std::nullopt; }

  // All of them, once they are there or were given up.
  std::optional<Stacks> work(Time now) {
    if (!taker_) return std::nullopt;
    taker_->work(now);
    if (!taker_->finished()) return std::nullopt;
    std::vector<std::optional<Stack>> taken = taker_->take();
    taker_.reset();
    Stacks stacks;
    for (std::size_t i = 0; i < pids_.size(); ++i) stacks.emplace_back(pids_[i], std::move(taken[i]));
    return stacks;
  }

 private:
  EventSource events_;
  std::optional<StackTaker> taker_;
  std::vector<pid_t> pids_;
};

}  // namespace col::launch
