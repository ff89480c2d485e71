#include "group/flight/mailbox.hpp"

#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "backend/capabilities.hpp"
#include "core/hash.hpp"

namespace col::group {
namespace {

TensorView writable_view(const Leg& leg) {
  return {leg.destination, leg.view.count, leg.view.dtype, leg.view.device};
}

}  // namespace

void Mailbox::post(Leg& leg, Pending& pending) {
  if (!leg.sending && (leg.peer == core_.rank() || leg.peer == kAnyPeer) && take_from_self(leg)) {
    leg.done = true;
    return;
  }
  if (leg.channel == nullptr) return;  // progress() looks again
  const std::uint64_t slot = leg.slot = message_slot(core_.token(), leg);
  if (leg.peer == kAnyPeer)
    ++open_any_[leg.tag];
  else
    leg.number = ++(leg.sending ? core_.surroundings().sent : core_.surroundings().received)[{leg.peer, leg.tag}];
  // The one from any rank may take a message of this peer first: which number this one gets, nobody knows.
  leg.numbered = leg.sending || open_any_[leg.tag] == 0;
  if (leg.parts != nullptr)
    post_in_parts(leg, slot, pending);
  else if (leg.sending)
    leg.ticket = leg.channel->post_send(leg.peer, slot, leg.view);
  else
    leg.ticket = leg.channel->post_recv(leg.peer, slot, writable_view(leg));
  leg.posted = true;
  announce(leg);
}

// For the other side, where both take it for their message of that number.
void Mailbox::announce(const Leg& leg) const {
  Announced* const announced = core_.surroundings().announced.get();
  if (announced == nullptr || !leg.numbered || leg.peer == kAnyPeer) return;
  const int rank = core_.rank(), size = core_.size();
  const std::uint64_t stream = core::Hash()
                                   .add("message")
                                   .add(leg.sending ? rank : leg.peer)
                                   .add(leg.sending ? leg.peer : rank)
                                   .add(leg.tag)
                                   .value();
  announced->message(leg.peer, stream, leg.number, leg.slot,
                     [leg, rank, size] { return describe_message(leg, rank, size); });
}

// A copy of which parts are sent while others are fetched, or copied back while others come.
void Mailbox::post_in_parts(Leg& leg, std::uint64_t slot, Pending& pending) {
  if (!leg.sending) {
    leg.ticket = leg.channel->post_recv(leg.peer, slot, writable_view(leg));
  } else {
    // Both end with `pending`, and a channel that is broken sends nothing any more.
    const auto fetched = [&pending, data = leg.view.data]() -> std::uint64_t {
      try {
        return pending.staging->fetched(data);
      } catch (...) {
        pending.copy_failure = std::current_exception();
        return 0;
      }
    };
    leg.ticket = leg.parts->post_filling_send(leg.peer, slot, leg.view, fetched);
  }
  ++in_parts_;
}

void Mailbox::follow_parts(Leg& leg, Pending& pending) {
  const std::uint64_t moved = leg.parts->moved(leg.ticket);
  if (moved != std::exchange(leg.moved, moved)) idle_turns_ = 0;
  if (pending.copy_failure) std::rethrow_exception(pending.copy_failure);
  if (!leg.sending) pending.staging->give_back(leg.view.data, moved, pending.stream);
}

bool Mailbox::progress(Leg& leg, Pending& pending, backend::HoldingOps* looks) {
  if (leg.done) return true;
  if (!leg.posted) {
    leg.done = take_from_self(leg);
    if (leg.done) pending.source = core_.rank();
    return leg.done;
  }
  const std::optional<int> peer = looks != nullptr ? looks->look(leg.ticket) : leg.channel->test(leg.ticket);
  if (!peer) {
    if (leg.parts != nullptr) follow_parts(leg, pending);
    return false;
  }
  complete(leg, pending, *peer);
  return true;
}

void Mailbox::complete(Leg& leg, Pending& pending, int peer) {
  leg.done = true;
  if (leg.parts != nullptr) --in_parts_;
  if (leg.sending) return;
  pending.source = peer;
  if (leg.peer != kAnyPeer) return;
  ++core_.surroundings().received[{peer, leg.tag}];
  --open_any_[leg.tag];
}

void Mailbox::send_to_self(Leg& leg) {
  const ConstTensorView& data = leg.view;
  try {
    ToSelf message{data.dtype, data.count, std::vector<std::byte>(data.bytes())};
    if (!data.empty()) std::memcpy(message.bytes.data(), data.data, data.bytes());
    to_self_[leg.tag].push_back(std::move(message));
    leg.done = true;
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw core_.own_error(
        ErrorCode::resource,
        fmt::format("no memory to keep a message of {} bytes to oneself until it is received", data.bytes()));
  }
}

std::map<int, std::ptrdiff_t> Mailbox::kept() const {
  std::map<int, std::ptrdiff_t> kept;
  for (const auto& [tag, messages] : to_self_) kept[tag] += static_cast<std::ptrdiff_t>(messages.size());
  return kept;
}

// Returns false if there is none yet.
bool Mailbox::take_from_self(const Leg& leg) {
  const auto found = to_self_.find(leg.tag);
  if (found == to_self_.end() || found->second.empty()) return false;
  const ToSelf& message = found->second.front();
  const bool same = message.dtype == leg.view.dtype && message.count == leg.view.count;
  if (!same && leg.peer == kAnyPeer) return false;
  if (!same)
    core_.fail(core_.own_error(
        ErrorCode::mismatch, fmt::format("recv of {} {} from oneself (tag {}), but {} {} were sent", leg.view.count,
                                         to_string(leg.view.dtype), leg.tag, message.count, to_string(message.dtype))));
  if (!leg.view.empty()) std::memcpy(leg.destination, message.bytes.data(), leg.view.bytes());
  found->second.pop_front();
  return true;
}

}  // namespace col::group
