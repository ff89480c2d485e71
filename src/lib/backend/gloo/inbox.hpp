// Receives that wait for their message, and messages that wait for their receive, in order. The transport's mutex
// guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
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
  Content content = 0;
  bool is_here = false;  // it has been sent; otherwise announced
  std::unique_ptr<char[]> kept = nullptr;
  std::uint64_t order = 0;  // of its coming
};

class Inbox {
 public:
  void add(OperationPtr receive) { receives_[receive->line].push_back(std::move(receive)); }
  void add(std::uint64_t line, Arrival arrival) {
    arrival.order = arrived_++;
    arrivals_[line].push_back(std::move(arrival));
  }

  // The oldest receive of a slot that takes a message of `peer`, or null. It stays until it is removed.
  OperationPtr receive_for(int peer, std::uint64_t line) const {
    OperationPtr here = receive_in(peer, line), other = receive_in(peer, line ^ kLargeBit);
    return here == nullptr || (other != nullptr && other->order < here->order) ? other : here;
  }
  void remove(const OperationPtr& receive) {
    const auto found = receives_.find(receive->line);
    if (found == receives_.end()) return;
    std::erase(found->second, receive);
    if (found->second.empty()) receives_.erase(found);
  }

  // The oldest message of the slot that the receive takes, or null.
  const Arrival* message_for(const Operation& receive) const {
    return message_from(receive.line, [&](const Arrival& one) { return receive.takes_from(one.peer); });
  }
  // The same of one of `peers`.
  const Arrival* message_for(std::uint64_t line, std::span<const int> peers) const {
    return message_from(
        line, [&](const Arrival& one) { return std::find(peers.begin(), peers.end(), one.peer) != peers.end(); });
  }
  // Takes one of message_for() out. Requires: it is in the line.
  Arrival take(std::uint64_t line, const Arrival* message) {
    const auto found = arrivals_.find(line);
    auto& queue = found->second;
    const auto place =
        std::find_if(queue.begin(), queue.end(), [message](const Arrival& one) { return &one == message; });
    Arrival arrival = std::move(*place);
    queue.erase(place);
    if (queue.empty()) arrivals_.erase(found);
    return arrival;
  }
  // Removes what a peer that has gone has announced. What it has sent stays.
  void forget_announced(int peer) {
    for (auto line = arrivals_.begin(); line != arrivals_.end();) {
      std::erase_if(line->second, [&](const Arrival& one) { return one.peer == peer && !one.is_here; });
      line = line->second.empty() ? arrivals_.erase(line) : std::next(line);
    }
  }

 private:
  OperationPtr receive_in(int peer, std::uint64_t line) const {
    const auto found = receives_.find(line);
    if (found == receives_.end()) return nullptr;
    for (const OperationPtr& receive : found->second) {
      if (receive->takes_from(peer)) return receive;
    }
    return nullptr;
  }
  template <class Accepts>
  const Arrival* message_from(std::uint64_t line, Accepts accepts) const {
    const Arrival* oldest = nullptr;
    for (const std::uint64_t each : {line, line ^ kLargeBit}) {
      const auto found = arrivals_.find(each);
      if (found == arrivals_.end()) continue;
      const auto first = std::find_if(found->second.begin(), found->second.end(), accepts);
      if (first != found->second.end() && (oldest == nullptr || first->order < oldest->order)) oldest = &*first;
    }
    return oldest;
  }

  std::uint64_t arrived_ = 0;
  // By line; none is empty.
  std::unordered_map<std::uint64_t, std::deque<OperationPtr>> receives_;
  std::unordered_map<std::uint64_t, std::deque<Arrival>> arrivals_;
};

}  // namespace col::gloo_backend
