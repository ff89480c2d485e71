// Posted messages by ticket.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <col/backend.hpp>

#include "backend/gloo/transport.hpp"

namespace col::gloo_backend {

class Tickets {
 public:
  enum class Direction : std::uint8_t { send, recv };
  struct Posted {
    std::unique_ptr<::gloo::transport::UnboundBuffer> buffer;  // null while the entry is free
    Direction direction = Direction::send;
    std::uint32_t generation = 0;

    GuardedBuffer& guarded() const { return static_cast<GuardedBuffer&>(*buffer); }
  };

  // Entries are used again, so that a steady stream of messages does not grow the table.
  Ticket add(std::unique_ptr<::gloo::transport::UnboundBuffer> buffer, Direction direction);
  // Throws invalid_argument for a ticket that is not in the table (already done, or never given).
  Posted& find(Ticket ticket);
  void remove(Ticket ticket);
  void clear();

 private:
  std::vector<Posted> entries_;
  std::vector<std::uint32_t> free_;
};

}  // namespace col::gloo_backend
