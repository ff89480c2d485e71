// Posted messages by ticket, and the queues they go through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include <col/backend.hpp>

namespace col::shm_backend {

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

 private:
  void grow();

  std::deque<Operation> entries_;
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

}  // namespace col::shm_backend
