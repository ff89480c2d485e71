// Resources that the ranks of one node share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace col::plan::simulation {

// Cores, given out in the order of requests.
class Cores {
 public:
  explicit Cores(int count) : free_(count) {}
  // Returns whether `who` has a core now; otherwise `who` is in the queue.
  bool ask(std::uint32_t who) {
    if (free_ == 0) {
      queue_.push_back(who);
      return false;
    }
    --free_;
    return true;
  }
  // Gives a core back, and returns who gets it.
  std::optional<std::uint32_t> give_back() {
    if (queue_.empty()) {
      ++free_;
      return std::nullopt;
    }
    const std::uint32_t who = queue_.front();
    queue_.pop_front();
    return who;
  }

 private:
  int free_;
  std::deque<std::uint32_t> queue_;
};

// Memory that gives all its present users an equal share of its bandwidth (processor sharing).
//
// `served_` is what a user would have received if it had been there from the beginning: it grows by bandwidth / users
// per second. A user that comes when it is s and needs n bytes has ended when it is s + n, whoever else comes and goes.
class MemoryBus {
 public:
  explicit MemoryBus(double bytes_per_second) : bandwidth_(bytes_per_second) {}

  void start(double now, std::uint32_t who, double bytes) {
    advance(now);
    users_.push_back({served_ + bytes, order_++, who});
    std::push_heap(users_.begin(), users_.end());
  }
  // When the next user ends, if no other user comes before.
  std::optional<double> next() const noexcept {
    if (users_.empty()) return std::nullopt;
    const double left = std::max(0.0, users_.front().done_at - served_);
    return updated_ + left * static_cast<double>(users_.size()) / bandwidth_;
  }
  // A user that has ended by now, if there is one.
  std::optional<std::uint32_t> finished(double now) {
    advance(now);
    if (users_.empty()) return std::nullopt;
    // Work that takes no time that the clock could show is rounding error.
    const double left = users_.front().done_at - served_;
    if (left * static_cast<double>(users_.size()) > 1e-11 * now * bandwidth_) return std::nullopt;
    std::pop_heap(users_.begin(), users_.end());
    const std::uint32_t who = users_.back().who;
    users_.pop_back();
    return who;
  }

 private:
  struct User {
    double done_at;
    std::uint64_t order;
    std::uint32_t who;
    bool operator<(const User& other) const noexcept {
      return done_at != other.done_at ? done_at > other.done_at : order > other.order;
    }
  };
  void advance(double now) noexcept {
    served_ = users_.empty() ? 0 : served_ + (now - updated_) * bandwidth_ / static_cast<double>(users_.size());
    updated_ = now;
  }

  double bandwidth_;
  double served_ = 0, updated_ = 0;
  std::uint64_t order_ = 0;
  std::vector<User> users_;  // a heap; the next one to end is in front
};

}  // namespace col::plan::simulation
