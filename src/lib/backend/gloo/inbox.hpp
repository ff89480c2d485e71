// Receives that wait for their message, and messages that wait for their receive, in order. The transport's mutex
// guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/gloo/operation.hpp"

namespace col::gloo_backend {

// A message that a peer has sent or announced.
struct Arrival {
  int peer = -1;
  std::size_t bytes = 0;
  bool is_here = false;  // it has been sent; otherwise announced
  std::unique_ptr<char[]> content = nullptr;
};

class Inbox {
 public:
  void add(OperationPtr receive) { receives_[receive->line].push_back(std::move(receive)); }
  void add(std::uint64_t line, Arrival arrival) { arrivals_[line].push_back(std::move(arrival)); }

  // The oldest receive that takes a message of `peer`, or null. It stays until it is removed.
  OperationPtr receive_for(int peer, std::uint64_t line) const {
    const auto found = receives_.find(line);
    if (found == receives_.end()) return nullptr;
    for (const OperationPtr& receive : found->second) {
      if (receive->takes_from(peer)) return receive;
    }
    return nullptr;
  }
  void remove(const OperationPtr& receive) {
    const auto found = receives_.find(receive->line);
    if (found == receives_.end()) return;
    std::erase(found->second, receive);
    if (found->second.empty()) receives_.erase(found);
  }

  // Removes the oldest message that the receive takes.
  std::optional<Arrival> take_for(const Operation& receive) {
    const auto found = arrivals_.find(receive.line);
    if (found == arrivals_.end()) return std::nullopt;
    auto& queue = found->second;
    const auto first =
        std::find_if(queue.begin(), queue.end(), [&](const Arrival& one) { return receive.takes_from(one.peer); });
    if (first == queue.end()) return std::nullopt;
    Arrival arrival = std::move(*first);
    queue.erase(first);
    if (queue.empty()) arrivals_.erase(found);
    return arrival;
  }
  // The sender of the oldest message of the line that is from one of `peers`; -1 if there is none.
  int first_sender(std::uint64_t line, std::span<const int> peers) const {
    const auto found = arrivals_.find(line);
    if (found == arrivals_.end()) return -1;
    for (const Arrival& arrival : found->second) {
      if (std::find(peers.begin(), peers.end(), arrival.peer) != peers.end()) return arrival.peer;
    }
    return -1;
  }
  // Removes what a peer that has gone has announced. What it has sent stays.
  void forget_announced(int peer) {
    for (auto line = arrivals_.begin(); line != arrivals_.end();) {
      std::erase_if(line->second, [&](const Arrival& one) { return one.peer == peer && !one.is_here; });
      line = line->second.empty() ? arrivals_.erase(line) : std::next(line);
    }
  }

 private:
  // By line; none is empty.
  std::unordered_map<std::uint64_t, std::deque<OperationPtr>> receives_;
  std::unordered_map<std::uint64_t, std::deque<Arrival>> arrivals_;
};

}  // namespace col::gloo_backend
