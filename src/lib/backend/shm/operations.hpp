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
    posted,     // a send that is not in the ring yet; a receive that no message has been found for
    announced,  // a large send that waits for its receive
    moving,     // a large message of which a part has been moved, or may be from now on
    done,
  };
  State state = State::unused;
  bool sending = false;
  int peer = kAnyPeer;                // of a receive from anybody: known once it has been paired
  const std::byte* source = nullptr;  // of a send
  std::byte* target = nullptr;        // of a receive
  std::uint64_t slot = 0;
  std::uint64_t bytes = 0;
  std::uint64_t moved = 0;    // bytes of a large message
  bool filling = false;       // a send whose bytes are not all there yet (Engine::filling_)
  std::uint64_t remote = 0;   // the ticket of the other end
  std::uint64_t ticket = 0;   // its own
  Operation* next = nullptr;  // in whichever queue or table it is

  bool done() const noexcept { return state == State::done; }
};

// Entries are used again, so that a steady stream of messages allocates nothing. Addresses are stable.
class Operations {
 public:
  explicit Operations(std::size_t reserved);

  // A fresh one, of state `posted`.
  Operation& add();
  // Null for a ticket that is not in use (ended already, or never given).
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
