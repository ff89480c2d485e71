// What the ranks of one node share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace col::plan::simulation {

// Cores, given to whoever asked first.
class Cores {
 public:
  explicit Cores(int count) : free_(count) {}
  // Whether `who` has a core now; otherwise it is in the queue.
  bool ask(std::uint32_t who) {
    if (free_ == 0) {
      queue_.push_back(who);
      return false;
    }
    --free_;
    return true;
  }
  // Gives a core back; returns who has it now.
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

// Memory that gives an equal share of its bandwidth to everyone who uses it at the moment (processor sharing).
//
// `served_` is what a user would have received that had been there from the beginning: it grows by bandwidth / users
// per second. Who comes when it is s and needs n bytes is done when it is s + n, whoever else comes and goes.
class Memory {
 public:
  explicit Memory(double bytes_per_second) : bandwidth_(bytes_per_second) {}

  void start(double now, std::uint32_t who, double bytes) {
    advance(now);
    users_.push_back({served_ + bytes, order_++, who});
    std::push_heap(users_.begin(), users_.end());
  }
  // When the next one is done, if nobody else comes before.
  std::optional<double> next() const noexcept {
    if (users_.empty()) return std::nullopt;
    const double left = std::max(0.0, users_.front().done_at - served_);
    return updated_ + left * static_cast<double>(users_.size()) / bandwidth_;
  }
  // One that is done by now, if any.
  std::optional<std::uint32_t> finished(double now) {
    advance(now);
    if (users_.empty()) return std::nullopt;
    // What takes no time that the clock could tell is rounding, not work.
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
  std::vector<User> users_;  // a heap, the next to be done in front
};

}  // namespace col::plan::simulation
