// The messages of one rank: those that were posted, those that came before their receive, and how they find each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <col/channel.hpp>

#include "backend/match_table.hpp"
#include "backend/shm/one_copy.hpp"

namespace col::shm_backend {

// ---- Posted messages by ticket, and the queues they go through

struct Operation {
  enum class State : std::uint8_t {
    unused,
    posted,     // a send that is not in the ring yet; a receive without a message so far
    announced,  // a large send that waits for its receive
    moving,     // a large message; a part of it has moved, or may move from now on
    done,
  };
  State state = State::unused;
  bool sending = false;
  int peer = kAnyPeer;                // for a receive from any peer: known once it is paired
  const std::byte* source = nullptr;  // of a send
  std::byte* target = nullptr;        // of a receive
  std::uint64_t slot = 0;
  std::uint64_t bytes = 0;
  std::uint64_t moved = 0;    // bytes of a large message
  bool filling = false;       // a send without all of its bytes so far (Engine::filling_)
  std::uint64_t remote = 0;   // the ticket of the other end
  std::uint64_t offered = 0;  // of a large message that is read from there: where it is in its sender's process
  std::uint64_t ticket = 0;   // its own
  Operation* next = nullptr;  // in the queue or table that it is in

  bool done() const noexcept { return state == State::done; }
};

// Entries are used again, so that a steady stream of messages allocates nothing. Addresses are stable.
class Operations {
 public:
  explicit Operations(std::size_t reserved);

  // A new one, in state `posted`.
  Operation& add();
  // Null for a ticket that is not in use: it has ended, or never existed.
  Operation* find(std::uint64_t ticket) noexcept;
  void remove(Operation& operation) noexcept;
  bool any() const noexcept { return used_ > 0; }

 private:
  void grow();

  std::deque<Operation> entries_;
  std::size_t used_ = 0;
  Operation* free_ = nullptr;
};

// First in, first out, through Operation::next.
class OperationQueue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  Operation& front() const noexcept { return *first_; }
  void push(Operation& operation) noexcept {
    operation.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &operation;
    last_ = &operation;
  }
  void pop() noexcept { first_ = first_->next; }

 private:
  Operation* first_ = nullptr;
  Operation* last_ = nullptr;
};

// ---- Messages that came before their receive was posted

// A small one completely, and the announcement of a large one.
struct Unexpected {
  int peer = -1;
  std::uint64_t slot = 0;
  std::uint64_t bytes = 0;
  bool announced = false;    // the message itself is still with the sender,
  std::uint64_t remote = 0;  // which has this ticket for it
  Offer offer = {};
  std::unique_ptr<std::byte[]> data;
  std::size_t capacity = 0;  // of `data`
  Unexpected* next = nullptr;
};

// Keeps entries that are given back, for later messages of about the same length. It keeps at most kKeptBytes of their
// memory.
class UnexpectedPool {
 public:
  // Makes room for `messages` messages of up to `data_bytes`.
  void reserve(std::size_t messages, std::size_t data_bytes);

  // With room for `data_bytes` in `data`. Requires: data_bytes <= kLargest.
  Unexpected& get(std::size_t data_bytes);
  void give_back(Unexpected& message) noexcept;

  static constexpr std::size_t kLargest = std::size_t{64} << 10;

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{4} << 20;
  // By capacity: none, then powers of two.
  static constexpr std::size_t kClasses = 12;
  static std::size_t class_of(std::size_t data_bytes) noexcept;
  static std::size_t capacity_of(std::size_t size_class) noexcept;
  Unexpected& make(std::size_t size_class);

  std::deque<Unexpected> entries_;
  std::array<Unexpected*, kClasses> free_{};
  std::size_t kept_bytes_ = 0;
};

using backend::MatchTable;

}  // namespace col::shm_backend
