// Messages, and the ports they wait for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/simulation/pair_table.hpp"

namespace col::plan::simulation {

// A message has two ends, and so has everything about it: [kOut] of the sender, [kIn] of the receiver.
enum Side : std::uint32_t { kOut = 0, kIn = 1 };

struct Message {
  std::array<int, 2> rank = {-1, -1};
  std::array<std::uint32_t, 2> slot = {};  // which message of its rank's round it is
  std::array<std::uint32_t, 2> port = {};
  std::array<std::uint32_t, 2> next = {kNoMessage, kNoMessage};  // of those that wait for the same port
  std::array<std::uint32_t, 2> previous = {kNoMessage, kNoMessage};
  std::uint32_t next_of_pair = kNoMessage;
  Side posted = kOut;       // while one end is missing: which one is there
  std::uint8_t parts = 0;   // of its own time and the shared resources, those that are still at it
  bool inter = false;       // between nodes
  std::uint64_t order = 0;  // the number of messages that became ready before it
  std::size_t elements = 0, bytes = 0;
};

// Messages that exist at the moment; a place is used again when its message has arrived.
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

// All ports, and the messages that wait for them: both ends are posted, but one port is busy at least.
//
// A port serves the first of those that wait for it whose other port is free. That can be a long search when a thousand
// wait, and nearly all other ports are busy; but then those that are not are few, and it is quicker to ask which of
// them has a message for this one. take_next() searches both ways at once and stops when either has the answer.
class Ports {
 public:
  Ports(std::size_t count, MessagePool& messages) : messages_(messages) {
    for (std::vector<Port>& side : ports_) side.resize(count);
  }

  // Whether both ports were free; they are the message's now. Requires: it does not wait.
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
  // The first that waits for this port and can have both; it has them now. kNoMessage if there is none.
  std::uint32_t take_next(Side side, std::uint32_t port);

 private:
  static constexpr std::uint32_t kNowhere = ~0U;
  struct Port {
    bool busy = false;
    std::uint32_t first = kNoMessage, last = kNoMessage;  // those that wait, in the order in which they became ready
    std::uint32_t place = kNowhere;                       // in idle_
  };

  Port& port(Side side, const Message& message) noexcept { return ports_[side][message.port[side]]; }
  std::uint32_t find_next(Side side, std::uint32_t port);
  void stop_waiting(std::uint32_t id);
  void note(Side side, std::uint32_t port);

  MessagePool& messages_;
  std::array<std::vector<Port>, 2> ports_;
  std::array<std::vector<std::uint32_t>, 2> idle_;  // free ports for which a message waits
  PairTable waiting_;                               // the same messages by their two ports
};

}  // namespace col::plan::simulation
