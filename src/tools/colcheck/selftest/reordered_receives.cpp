#include "colcheck/selftest/reordered_receives.hpp"

#include <algorithm>
#include <utility>

namespace col::colcheck {
namespace {

// Set in the tickets of add(), and never in a channel's tickets, which count from small numbers.
constexpr std::uint64_t kOwn = std::uint64_t{1} << 63;

}  // namespace

// Takes the place of the last equal one, so that slots and lengths come in the order of the messages.
Ticket ReorderedReceives::add(int peer, std::uint64_t slot, TensorView data) {
  Receive receive{kOwn | next_++, peer, slot, data};
  const Ticket ticket{receive.id};
  const auto alike = std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const Receive& other) {
    return other.peer == peer && other.slot == slot && other.data.bytes() == data.bytes();
  });
  if (alike != waiting_.rend()) std::swap(*alike, receive);
  waiting_.push_back(receive);
  return ticket;
}

void ReorderedReceives::post(Channel& channel) {
  for (const Receive& receive : waiting_)
    posted_[receive.id] = channel.post_recv(receive.peer, receive.slot, receive.data);
  waiting_.clear();
}

Ticket ReorderedReceives::translate(Ticket ticket) const {
  const auto found = posted_.find(ticket.id);
  return found == posted_.end() ? ticket : found->second;
}

}  // namespace col::colcheck
