// The messages that a rank has posted in a group over hosts. Each goes over one side: `near` (the ranks of this host)
// or `wire` (the others). A receive from any peer waits in line until its side is known.
#pragma once

#include <cstdint>
#include <deque>

#include <col/channel.hpp>

namespace col::hosts_backend {

enum class Side : std::uint8_t { near, wire };

struct Operation {
  enum class State : std::uint8_t { unused, in_line, posted };
  State state = State::unused;
  Side side = Side::near;
  bool sending = false;
  int peer = kAnyPeer;    // in the group
  std::size_t bytes = 0;  // the length of the message
  Ticket ticket = {};     // the ticket that the side's channel gave
  // For a receive in line.
  std::uint64_t slot = 0;
  TensorView data = {};

  std::uint64_t id = 0;  // its own ticket
  Operation* next_free = nullptr;
};

// Entries are used again, so that a steady stream of messages allocates nothing. Addresses are stable.
class Operations {
 public:
  Operation& add() {
    if (free_ == nullptr) {
      const std::uint64_t index = entries_.size();
      free_ = &entries_.emplace_back();
      free_->id = index;
    }
    Operation& operation = *free_;
    free_ = operation.next_free;
    const std::uint64_t id = operation.id + kNextGeneration;
    operation = {};
    operation.id = id;
    return operation;
  }
  // Null for a ticket that is not in use.
  Operation* find(Ticket ticket) noexcept {
    const std::uint64_t index = ticket.id % kNextGeneration;
    if (index >= entries_.size()) return nullptr;
    Operation& operation = entries_[index];
    return operation.id == ticket.id && operation.state != Operation::State::unused ? &operation : nullptr;
  }
  void remove(Operation& operation) noexcept {
    operation.state = Operation::State::unused;
    operation.next_free = free_;
    free_ = &operation;
  }

 private:
  // A ticket is the entry's index below its generation, which changes at every use.
  static constexpr std::uint64_t kNextGeneration = std::uint64_t{1} << 32;

  std::deque<Operation> entries_;
  Operation* free_ = nullptr;
};

}  // namespace col::hosts_backend
