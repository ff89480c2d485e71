// Posted messages by ticket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
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
    // The slot of a receive that waits in line (see GlooChannel::post_recv); otherwise 0, which is no message's slot.
    std::uint64_t line = 0;

    GuardedBuffer& guarded() const { return static_cast<GuardedBuffer&>(*buffer); }
  };

  // Entries are used again, so that a steady stream of messages does not grow the table. `line` is the slot of a
  // receive that waits in line.
  Ticket add(std::unique_ptr<::gloo::transport::UnboundBuffer> buffer, Direction direction, std::uint64_t line = 0);
  // Whether a receive that waits in line for this slot has not ended yet.
  bool has_line(std::uint64_t slot) const { return lines_.count(slot) != 0; }
  // Throws invalid_argument for a ticket that is not in the table: it has already ended, or never existed.
  Posted& find(Ticket ticket);
  void remove(Ticket ticket);
  void clear();

 private:
  std::vector<Posted> entries_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint64_t, std::size_t> lines_;  // receives in line, by slot
};

}  // namespace col::gloo_backend
