// Messages, and the ports that they wait for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/simulation/pair_table.hpp"

namespace col::plan::simulation {

// A message has two ends, and so has everything about it: [kOut] is the sender's, [kIn] the receiver's.
enum Side : std::uint32_t { kOut = 0, kIn = 1 };

struct Message {
  std::array<int, 2> rank = {-1, -1};
  std::array<std::uint32_t, 2> slot = {};  // the number of the message in its rank's round
  std::array<std::uint32_t, 2> port = {};
  std::array<std::uint32_t, 2> next = {kNoMessage, kNoMessage};  // the next message that waits for the same port
  std::array<std::uint32_t, 2> previous = {kNoMessage, kNoMessage};
  std::uint32_t next_of_pair = kNoMessage;
  Side posted = kOut;       // while one end is missing: the end that is there
  std::uint8_t parts = 0;   // how many are still busy: its own time and the shared resources
  bool inter = false;       // between nodes
  std::uint64_t order = 0;  // the number of messages that became ready before it
  std::size_t elements = 0, bytes = 0;
};

// The existing messages. A place is used again after its message has arrived.
class MessagePool {
 public:
  std::uint32_t make() {
    if (free_.empty()) {
      messages_.emplace_back();
      return static_cast<std::uint32_t>(messages_.size() - 1);
    }
    const std::uint32_t id = free_.back();
    free_.pop_back();
    messages_[id] = Message{};
    return id;
  }
  void release(std::uint32_t id) { free_.push_back(id); }
  Message& operator[](std::uint32_t id) noexcept { return messages_[id]; }

 private:
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_;
};

// All ports, and the messages that wait for them: both ends are posted, but at least one port is busy.
//
// A port serves the first message that waits for it and whose other port is free. This search can be long if a thousand
// messages wait and nearly all other ports are busy. But then few ports are free, and it is faster to ask which of
// these has a message for this one. Only ports of one circle ever meet, so only the free ports of its own circle are
// asked.
class Ports {
 public:
  // Port p is of the circle circles[p].
  Ports(const std::vector<std::uint32_t>& circles, MessagePool& messages);

  // Returns whether both ports were free; they then belong to the message. Requires: it does not wait.
  bool take(std::uint32_t id) {
    const Message& message = messages_[id];
    if (port(kOut, message).busy || port(kIn, message).busy) return false;
    for (const Side side : {kOut, kIn}) {
      port(side, message).busy = true;
      note(side, message.port[side]);
    }
    return true;
  }
  void free(const Message& message) {
    for (const Side side : {kOut, kIn}) {
      port(side, message).busy = false;
      note(side, message.port[side]);
    }
  }

  void wait(std::uint32_t id);
  // The first message that waits for this port and can have both ports, which it now has. kNoMessage if there is none.
  std::uint32_t take_next(Side side, std::uint32_t port);

 private:
  static constexpr std::uint32_t kNowhere = ~0U;
  // The messages that wait for one pair of ports, in their order.
  struct Waiting {
    std::uint64_t order = ~std::uint64_t{0};  // of the first; the greatest number if there is none
    std::uint32_t first = kNoMessage, last = kNoMessage;
  };
  struct Port {
    bool busy = false;
    // the messages that wait, in the order in which they became ready
    std::uint32_t first = kNoMessage, last = kNoMessage;
    std::uint32_t circle = 0, index = 0;  // its number in the circle
    std::uint32_t place = kNowhere;       // in idle_[side][circle]
    std::vector<Waiting> by_peer = {};    // by the peer's number in the circle; empty until a message waits
  };
  struct Idle {
    std::uint32_t port, index;
  };

  Port& port(Side side, const Message& message) noexcept { return ports_[side][message.port[side]]; }
  Waiting& waiting(Side side, const Message& message) noexcept {
    return port(side, message).by_peer[port(side == kOut ? kIn : kOut, message).index];
  }
  std::uint32_t find_next(Side side, std::uint32_t port);
  void stop_waiting(std::uint32_t id);
  void note(Side side, std::uint32_t port);

  MessagePool& messages_;
  std::array<std::vector<Port>, 2> ports_;
  std::vector<std::uint32_t> sizes_;                    // of the circles
  std::array<std::vector<std::vector<Idle>>, 2> idle_;  // free ports for which a message waits, by circle
};

}  // namespace col::plan::simulation
