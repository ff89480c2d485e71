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
};

class Inbox {
 public:
  void add(OperationPtr receive) { receives_[slot_of(receive->line)].push_back(std::move(receive)); }
  void add(std::uint64_t line, Arrival arrival) { arrivals_[slot_of(line)].push_back(std::move(arrival)); }

  // The oldest receive of a slot that takes a message of `peer`, or null. It stays until it is removed.
  OperationPtr receive_for(int peer, std::uint64_t line) const {
    const auto* const receive =
        first(receives_, line, [peer](const OperationPtr& one) { return one->takes_from(peer); });
    return receive != nullptr ? *receive : nullptr;
  }
  void remove(const OperationPtr& receive) {
    const auto found = receives_.find(slot_of(receive->line));
    if (found == receives_.end()) return;
    std::erase(found->second, receive);
    if (found->second.empty()) receives_.erase(found);
  }

  // The oldest message of the slot that the receive takes, or null.
  const Arrival* message_for(const Operation& receive) const {
    return first(arrivals_, receive.line, [&](const Arrival& one) { return receive.takes_from(one.peer); });
  }
  // The same of one of `peers`.
  const Arrival* message_for(std::uint64_t line, std::span<const int> peers) const {
    return first(arrivals_, line,
                 [&](const Arrival& one) { return std::find(peers.begin(), peers.end(), one.peer) != peers.end(); });
  }
  // Takes one of message_for() out. Requires: it is there.
  Arrival take(std::uint64_t line, const Arrival* message) {
    const auto found = arrivals_.find(slot_of(line));
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
  // Small and large ones together, in their order. None is empty.
  template <class Item>
  using BySlot = std::unordered_map<std::uint64_t, std::deque<Item>>;

  static constexpr std::uint64_t slot_of(std::uint64_t line) noexcept { return line & ~kLargeBit; }
  template <class Item, class Accepts>
  static const Item* first(const BySlot<Item>& all, std::uint64_t line, Accepts accepts) {
    const auto found = all.find(slot_of(line));
    if (found == all.end()) return nullptr;
    const auto place = std::find_if(found->second.begin(), found->second.end(), accepts);
    return place != found->second.end() ? &*place : nullptr;
  }

  BySlot<OperationPtr> receives_;
  BySlot<Arrival> arrivals_;
};

}  // namespace col::gloo_backend
