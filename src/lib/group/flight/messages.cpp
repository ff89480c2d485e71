// Point to point: messages between two ranks of a group, or to oneself.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "group/call/checks.hpp"
#include "group/call/composite.hpp"
#include "group/call/use.hpp"
#include "group/state.hpp"

namespace col {
namespace {

TensorView writable_view(const group::Leg& leg) {
  return {leg.destination, leg.view.count, leg.view.dtype, leg.view.device};
}

}  // namespace

int Group::State::exchange(std::string_view name, std::vector<group::Leg> legs, const Options& options) {
  const Use use(*this);
  const PendingPtr pending = begin_messages(name, std::move(legs), options, true);
  await(*pending);
  return pending->source;
}

Work Group::State::start_messages(std::string_view name, std::vector<group::Leg> legs, const Options& options) {
  const Use use(*this);
  PendingPtr pending = begin_messages(name, std::move(legs), options, false);
  if (!holds_back_messages()) progress_all();
  return work_of(std::move(pending));
}

// Between GPUs, messages without a tag go by NCCL. Everything else needs the host.
Channel* Group::State::channel_for(const group::Leg& leg) const {
  if (leg.peer == rank()) return nullptr;
  const bool by_host = hosted_ && (leg.tag != 0 || leg.peer == kAnyPeer);
  return by_host ? hosted_->channel : own_.channel;
}

// Whether messages between GPUs have been posted that a rank waits for later. NCCL does one thing after another: they
// begin when the rank waits, together, so that a send does not hold up the receive which its peer waits for first.
bool Group::State::holds_back_messages() const {
  return hosted_ && std::any_of(active_.begin(), active_.end(), [&](const PendingPtr& pending) {
           return std::any_of(pending->legs.begin(), pending->legs.end(), [&](const group::Leg& leg) {
             return leg.posted && !leg.done && leg.channel == own_.channel;
           });
         });
}

void Group::State::check_leg(const group::Leg& leg) const {
  if (!leg.from_any) group::check_peer(leg.peer, leg.sending ? "destination" : "source", shape());
  group::check_tensor(leg.view, leg.sending ? "what is sent" : "what is received", shape());
  if (hosted_ && leg.from_any && leg.tag == 0)
    throw own_error(
        ErrorCode::invalid_argument,
        "recv_any: between GPUs, messages without a tag go by NCCL, which names their source; give those that "
        "may come from any rank a tag");
}

// What is received into may be no part of another buffer of the same call.
void Group::State::check_apart(const std::vector<group::Leg>& legs) const {
  if (legs.size() < 2) return;
  std::vector<const group::Leg*> by_address;
  for (const group::Leg& leg : legs) {
    if (!leg.view.empty()) by_address.push_back(&leg);
  }
  const auto begin = [](const group::Leg* leg) { return static_cast<const std::byte*>(leg->view.data); };
  std::sort(by_address.begin(), by_address.end(),
            [&](const group::Leg* a, const group::Leg* b) { return std::less<>{}(begin(a), begin(b)); });
  const std::byte* end = nullptr;           // of those so far
  const std::byte* end_received = nullptr;  // of those so far that are received into
  for (const group::Leg* leg : by_address) {
    if (std::less<>{}(begin(leg), leg->sending ? end_received : end))
      throw own_error(ErrorCode::invalid_argument,
                      "a buffer to receive into overlaps another buffer of the same call; use separate buffers");
    const std::byte* const own_end = begin(leg) + leg->view.bytes();
    end = std::max(end, own_end, std::less<>{});
    if (!leg->sending) end_received = std::max(end_received, own_end, std::less<>{});
  }
}

// A wait for a message to oneself that was never sent would not end. This is checked before anything is posted, so that
// the group stays usable.
void Group::State::require_sent_to_self(const std::vector<group::Leg>& legs) const {
  const auto receives_own = [this](const group::Leg& leg) {
    return !leg.sending && !leg.done && (leg.peer == rank() || (leg.peer == kAnyPeer && size() == 1));
  };
  if (std::none_of(legs.begin(), legs.end(), receives_own)) return;
  std::map<int, std::ptrdiff_t> left;  // by tag, after those who came before have taken theirs
  for (const auto& [tag, messages] : to_self_) left[tag] += static_cast<std::ptrdiff_t>(messages.size());
  for (const PendingPtr& earlier : active_) {
    for (const group::Leg& leg : earlier->legs) left[leg.tag] -= receives_own(leg) ? 1 : 0;
  }
  for (const group::Leg& leg : legs) left[leg.tag] += leg.sending && leg.peer == rank() ? 1 : 0;
  for (const group::Leg& leg : legs) {
    if (!receives_own(leg) || --left[leg.tag] >= 0) continue;
    throw own_error(
        ErrorCode::invalid_argument,
        fmt::format("recv from oneself (tag {}), but nothing was sent to oneself before; this would wait for ever",
                    leg.tag));
  }
}

Group::State::PendingPtr Group::State::begin_messages(std::string_view name, std::vector<group::Leg> legs,
                                                      const Options& options, bool blocking) {
  check_name(options.group);
  for (const group::Leg& leg : legs) check_leg(leg);
  check_apart(legs);
  if (blocking) require_sent_to_self(legs);
  for (group::Leg& leg : legs) leg.channel = channel_for(leg);
  const bool by_gpu = std::ranges::any_of(legs, [this](const group::Leg& leg) { return leg.channel == own_.channel; });
  if (by_gpu && own_.gpu != nullptr) own_.gpu->post_after(options.stream);
  auto staging = stage(legs, options.stream);
  for (const group::Leg& leg : legs) {
    if (DeviceExtension* const gpu = gpu_of(leg.channel))
      gpu->check({.collective = leg.sending ? Collective::send : Collective::recv, .in = leg.view});
  }
  PendingPtr pending = acquire();
  pending->name = group::Composite::current().empty() ? name : group::Composite::current();
  pending->collective = false;
  // The number in the record stays that of the last collective, because the search for a straggler compares
  // collectives.
  pending->sequence = sequence_;
  pending->timeout = timeout_of(options);
  pending->stream = options.stream;
  pending->staging = std::move(staging);
  pending->legs = std::move(legs);
  pending->fingerprint = 0;
  try {
    // Messages between two ranks pair in the order of their posting, which must not depend on how long a copy takes.
    fetch_messages(*pending);
    // Sends to oneself first, so that a receive of the same call finds what those from before leave; then receives
    // before sends, so that what arrives has a place.
    bool to_self = false;
    for (group::Leg& leg : pending->legs) {
      if (!leg.sending || leg.peer != rank()) continue;
      send_to_self(leg);
      to_self = true;
    }
    if (to_self) progress_all();
    active_.push_back(pending);
    for (const bool sending : {false, true}) {
      for (group::Leg& leg : pending->legs) {
        if (leg.sending == sending && !leg.done) post(leg, *pending);
        if (leg.done && !leg.sending) pending->source = rank();
      }
    }
  } catch (...) {
    pending->ended = true;
    if (pending->legs.size() == 1 && pending->legs.front().peer == rank() && !broken_)
      throw;  // nothing has left this rank: the group stays usable
    group::Diagnosis diagnosis = diagnose(*pending);
    fail_with_current(diagnosis, *pending);
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
void Group::State::post(group::Leg& leg, group::Pending& pending) {
  if (!leg.sending && (leg.peer == rank() || leg.peer == kAnyPeer) && take_from_self(leg)) {
    leg.done = true;
    return;
  }
  if (leg.channel == nullptr) return;  // progress() looks again
  const std::uint64_t slot = group::message_slot(parts_.token, leg);
  if (leg.peer == kAnyPeer)
    ++open_any_[leg.tag];
  else
    leg.number = ++(leg.sending ? parts_.surroundings.sent : parts_.surroundings.received)[{leg.peer, leg.tag}];
  // The one from any rank may take a message of this peer first: which number this one gets, nobody knows.
  leg.numbered = leg.sending || open_any_[leg.tag] == 0;
  if (leg.parts != nullptr)
    post_in_parts(leg, slot, pending);
  else if (leg.sending)
    leg.ticket = leg.channel->post_send(leg.peer, slot, leg.view);
  else
    leg.ticket = leg.channel->post_recv(leg.peer, slot, writable_view(leg));
  leg.posted = true;
}

// A copy of which parts are sent while others are fetched, or copied back while others come.
void Group::State::post_in_parts(group::Leg& leg, std::uint64_t slot, group::Pending& pending) {
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

void Group::State::follow_parts(group::Leg& leg, group::Pending& pending) {
  const std::uint64_t moved = leg.parts->moved(leg.ticket);
  if (moved != std::exchange(leg.moved, moved)) idle_turns_ = 0;
  if (pending.copy_failure) std::rethrow_exception(pending.copy_failure);
  if (!leg.sending) pending.staging->give_back(leg.view.data, moved, pending.stream);
}

bool Group::State::progress(group::Leg& leg, group::Pending& pending) {
  if (leg.done) return true;
  if (!leg.posted) {
    leg.done = take_from_self(leg);
    if (leg.done) pending.source = rank();
    return leg.done;
  }
  const std::optional<int> peer = leg.channel->test(leg.ticket);
  if (!peer) {
    if (leg.parts != nullptr) follow_parts(leg, pending);
    return false;
  }
  complete(leg, pending, *peer);
  return true;
}

void Group::State::complete(group::Leg& leg, group::Pending& pending, int peer) {
  leg.done = true;
  if (leg.parts != nullptr) --in_parts_;
  if (leg.sending) return;
  pending.source = peer;
  if (leg.peer != kAnyPeer) return;
  ++parts_.surroundings.received[{peer, leg.tag}];
  --open_any_[leg.tag];
}

void Group::State::send_to_self(group::Leg& leg) {
  const ConstTensorView& data = leg.view;
  try {
    ToSelf message{data.dtype, data.count, std::vector<std::byte>(data.bytes())};
    if (!data.empty()) std::memcpy(message.bytes.data(), data.data, data.bytes());
    to_self_[leg.tag].push_back(std::move(message));
    leg.done = true;
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw own_error(
        ErrorCode::resource,
        fmt::format("no memory to keep a message of {} bytes to oneself until it is received", data.bytes()));
  }
}

// Returns false if there is none yet.
bool Group::State::take_from_self(const group::Leg& leg) {
  const auto found = to_self_.find(leg.tag);
  if (found == to_self_.end() || found->second.empty()) return false;
  const ToSelf& message = found->second.front();
  const bool same = message.dtype == leg.view.dtype && message.count == leg.view.count;
  if (!same && leg.peer == kAnyPeer) return false;
  if (!same)
    fail(own_error(ErrorCode::mismatch,
                   fmt::format("recv of {} {} from oneself (tag {}), but {} {} were sent", leg.view.count,
                               to_string(leg.view.dtype), leg.tag, message.count, to_string(message.dtype))));
  if (!leg.view.empty()) std::memcpy(leg.destination, message.bytes.data(), leg.view.bytes());
  found->second.pop_front();
  return true;
}

}  // namespace col
