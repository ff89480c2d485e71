// Point to point: messages between two ranks of a group, or to oneself.
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "group/checks.hpp"
#include "group/state.hpp"
#include "group/use.hpp"

namespace col {

int Group::State::exchange(std::string_view name, std::vector<group::Leg> legs, const Options& options) {
  const Use use(*this);
  const PendingPtr pending = begin_messages(name, std::move(legs), options);
  for (const group::Leg& leg : pending->legs) {
    if (leg.done || leg.posted || leg.sending) continue;
    active_.pop_back();
    pending->ended = true;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("recv from oneself (tag {}), but nothing was sent to oneself before; this would wait for ever",
                    leg.tag),
        this->name(), rank());
  }
  await(*pending);
  return pending->source;
}

Work Group::State::start_messages(std::string_view name, std::vector<group::Leg> legs, const Options& options) {
  const Use use(*this);
  PendingPtr pending = begin_messages(name, std::move(legs), options);
  progress_all();
  return work_of(std::move(pending));
}

void Group::State::check_leg(const group::Leg& leg) const {
  const group::Shape shape{name(), rank(), size()};
  if (leg.peer != kAnyPeer) group::check_peer(leg.peer, leg.sending ? "destination" : "source", shape);
  group::check_tensor(leg.view, leg.sending ? "what is sent" : "what is received", shape);
}

Group::State::PendingPtr Group::State::begin_messages(std::string_view name, std::vector<group::Leg> legs,
                                                      const Options& options) {
  check_name(options.group);
  for (const group::Leg& leg : legs) check_leg(leg);
  PendingPtr pending = acquire();
  pending->name = name;
  pending->collective = false;
  // The record's number stays that of the last collective: whoever looks for a straggler compares collectives.
  pending->sequence = sequence_;
  pending->timeout = timeout_of(options);
  pending->legs = std::move(legs);
  pending->fingerprint = 0;
  active_.push_back(pending);
  try {
    // Sends to oneself first, so that a receive of the same call finds them; then receives before sends, so that what
    // arrives has a place.
    for (group::Leg& leg : pending->legs) {
      if (leg.sending && leg.peer == rank()) send_to_self(leg);
    }
    for (const bool sending : {false, true}) {
      for (group::Leg& leg : pending->legs) {
        if (leg.sending == sending && !leg.done) post(leg);
        if (leg.done && !leg.sending) pending->source = rank();
      }
    }
  } catch (const Error& error) {
    if (broken_) throw;
    if (error.code() == ErrorCode::resource && pending->legs.size() == 1 && pending->legs.front().peer == rank()) {
      active_.pop_back();  // nothing has left this rank: the group stays usable
      pending->ended = true;
      throw;
    }
    fail(diagnose(*pending).explain(error));
  }
  if (parts_.record != nullptr) {
    for (const group::Leg& leg : pending->legs) {
      if (leg.posted) pending->fingerprint = group::message_slot(parts_.token, leg);
    }
    if (pending->fingerprint != 0) parts_.record->begin(this->name(), sequence_, name, pending->fingerprint);
  }
  return pending;
}

// Hands one message to the channel; one to oneself stays here.
void Group::State::post(group::Leg& leg) {
  if (!leg.sending && (leg.peer == rank() || leg.peer == kAnyPeer) && take_from_self(leg)) {
    leg.done = true;
    return;
  }
  if (leg.peer == rank() || !parts_.channel) return;  // progress() looks again
  const std::uint64_t slot = group::message_slot(parts_.token, leg);
  if (leg.peer != kAnyPeer) leg.number = ++(leg.sending ? sent_ : received_)[{leg.peer, leg.tag}];
  leg.ticket = leg.sending ? parts_.channel->post_send(leg.peer, slot, leg.view)
                           : parts_.channel->post_recv(
                                 leg.peer, slot, {leg.destination, leg.view.count, leg.view.dtype, leg.view.device});
  leg.posted = true;
}

bool Group::State::progress(group::Leg& leg, group::Pending& pending) {
  if (leg.done) return true;
  if (!leg.posted) {
    leg.done = take_from_self(leg);
    if (leg.done) pending.source = rank();
    return leg.done;
  }
  const std::optional<int> peer = parts_.channel->test(leg.ticket);
  if (!peer) return false;
  leg.done = true;
  if (leg.sending) return true;
  pending.source = *peer;
  if (leg.peer == kAnyPeer) ++received_[{*peer, leg.tag}];
  return true;
}

void Group::State::send_to_self(group::Leg& leg) {
  const ConstTensorView& data = leg.view;
  try {
    ToSelf message{data.dtype, data.count, std::vector<std::byte>(data.bytes())};
    if (!data.empty()) std::memcpy(message.bytes.data(), data.data, data.bytes());
    to_self_[leg.tag].push_back(std::move(message));
    leg.done = true;
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw Error(ErrorCode::resource,
                fmt::format("no memory to keep a message of {} bytes to oneself until it is received", data.bytes()),
                name(), rank());
  }
}

// False when there is none yet.
bool Group::State::take_from_self(const group::Leg& leg) {
  const auto found = to_self_.find(leg.tag);
  if (found == to_self_.end() || found->second.empty()) return false;
  const ToSelf& message = found->second.front();
  const bool same = message.dtype == leg.view.dtype && message.count == leg.view.count;
  if (!same && leg.peer == kAnyPeer) return false;
  if (!same)
    fail(Error(ErrorCode::mismatch,
               fmt::format("recv of {} {} from oneself (tag {}), but {} {} were sent", leg.view.count,
                           to_string(leg.view.dtype), leg.tag, message.count, to_string(message.dtype)),
               name(), rank()));
  if (!leg.view.empty()) std::memcpy(leg.destination, message.bytes.data(), leg.view.bytes());
  found->second.pop_front();
  return true;
}

}  // namespace col
