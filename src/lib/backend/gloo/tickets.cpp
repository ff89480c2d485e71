#include "backend/gloo/tickets.hpp"

#include <utility>

#include <fmt/format.h>

namespace col::gloo_backend {
namespace {

constexpr std::uint32_t index_of(Ticket ticket) {
  return static_cast<std::uint32_t>(ticket.id);
}
constexpr std::uint32_t generation_of(Ticket ticket) {
  return static_cast<std::uint32_t>(ticket.id >> 32);
}

}  // namespace

Ticket Tickets::add(std::unique_ptr<::gloo::transport::UnboundBuffer> buffer, Direction direction, std::uint64_t line) {
  if (free_.empty()) {
    entries_.emplace_back();
    free_.reserve(entries_.size());  // so that remove() cannot fail
    free_.push_back(static_cast<std::uint32_t>(entries_.size() - 1));
  }
  if (line != 0) ++lines_[line];
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Posted& posted = entries_[index];
  posted.buffer = std::move(buffer);
  posted.direction = direction;
  posted.line = line;
  ++posted.generation;
  return Ticket{(static_cast<std::uint64_t>(posted.generation) << 32) | index};
}

Tickets::Posted& Tickets::find(Ticket ticket) {
  const std::uint32_t index = index_of(ticket);
  if (index >= entries_.size() || entries_[index].buffer == nullptr ||
      entries_[index].generation != generation_of(ticket)) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("gloo: ticket {:#x} is not in use; a ticket ends when test() returns a peer or wait() returns",
                    ticket.id));
  }
  return entries_[index];
}

void Tickets::remove(Ticket ticket) {
  Posted& posted = find(ticket);
  posted.buffer.reset();
  free_.push_back(index_of(ticket));
  if (const auto line = lines_.find(posted.line); line != lines_.end() && --line->second == 0) lines_.erase(line);
}

void Tickets::clear() {
  entries_.clear();
  free_.clear();
  lines_.clear();
}

}  // namespace col::gloo_backend
