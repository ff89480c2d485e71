// The messages of this rank: those that channels move, and those to oneself, which stay here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "backend/capabilities.hpp"
#include "group/flight/core.hpp"
#include "group/flight/pending.hpp"

namespace col::group {

// Requires: the group's lock is held.
class Mailbox {
 public:
  explicit Mailbox(Core& core) : core_(core) {}

  // Keeps the message until it is received. Throws resource.
  void send_to_self(Leg& leg);
  // By tag: how many messages to oneself have not been received.
  std::map<int, std::ptrdiff_t> kept() const;
  // Hands a message to its channel, or receives one to oneself that is there. Throws what the channel throws.
  void post(Leg& leg, Pending& pending);
  // Returns whether the message has ended. `looks`: of its channel, to hand nothing over; else null. Throws what the
  // channel throws, and mismatch.
  bool progress(Leg& leg, Pending& pending, backend::HoldingOps* looks);
  // For a message that has ended in its channel; `peer` is what the channel has returned.
  void complete(Leg& leg, Pending& pending, int peer);

  // Whether messages are in flight of which parts are copied meanwhile; and how often these were looked at since a part
  // last moved, this time included.
  bool moves_parts() const { return in_parts_ > 0; }
  int count_idle_turn() { return idle_turns_++; }

 private:
  void announce(const Leg& leg) const;
  struct ToSelf {  // a message to oneself that is not received yet
    DType dtype;
    std::size_t count;
    std::vector<std::byte> bytes;
  };

  bool take_from_self(const Leg& leg);
  void post_in_parts(Leg& leg, std::uint64_t slot, Pending& pending);
  void follow_parts(Leg& leg, Pending& pending);

  Core& core_;
  std::map<int, std::deque<ToSelf>> to_self_;  // by tag
  std::map<int, int> open_any_;                // by tag: receives from any rank that are in flight
  int in_parts_ = 0;                           // messages in flight that move in parts
  int idle_turns_ = 0;                         // polls since a part of one last moved
};

}  // namespace col::group
