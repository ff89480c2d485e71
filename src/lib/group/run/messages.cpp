#include "group/run/messages.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "backend/capabilities.hpp"
#include "group/call/checks.hpp"
#include "group/call/composite.hpp"

namespace col::group {

int Messages::exchange(std::string_view name, std::vector<Leg> legs, const Options& options) {
  const Use use(access_, options);
  return exchange_all(name, std::move(legs), options);
}

void Messages::exchange_one(std::string_view name, const Leg& leg, const Options& options) {
  const Use use(access_, options);
  if (!exchange_at_once(leg, options)) exchange_all(name, {leg}, options);
}

int Messages::exchange_all(std::string_view name, std::vector<Leg> legs, const Options& options) {
  const PendingPtr pending = begin(name, std::move(legs), options, true);
  flight_.await(*pending);
  return pending->source;
}

// Most small messages need not wait: nothing is kept of them but their number. Everything that has to be explained, or
// that may wait for long, goes the other way.
bool Messages::exchange_at_once(const Leg& leg, const Options& options) {
  const Lane& own = lanes_.own();
  if (own.can.immediate == nullptr || !flight_.active().empty() || leg.peer == core_.rank() ||
      Staging::is_needed(leg.view, own.device) || !Composite::current().empty())
    return false;
  core_.check_name(options.group);
  if (!is_alike(leg) || (!leg.sending && leg.destination != checked_)) check_leg(leg);
  if (!leg.sending) checked_ = leg.destination;
  if (leg.view.data == nullptr && leg.view.count > 0) return false;
  const Alike& alike = this->alike(leg);
  const Collective op = leg.sending ? Collective::send : Collective::recv;
  const CallDetails details{.dtype = leg.view.dtype,
                            .count = leg.view.count,
                            .partner = core_.world_rank(leg.peer),
                            .tag = leg.tag,
                            .label = core_.label()};
  core::CallRing* const ring = core_.ring();
  if (ring != nullptr && !core_.is_named_in_ring()) return false;
  const core::CallRing::Words words = core_.recorded(op, details);
  const std::uint64_t entry = ring != nullptr ? ring->begin(words, starter_.last()) : 0;
  core::Trace* const timeline = core::Trace::on();
  const std::uint64_t began = timeline != nullptr ? timeline->ticks() : 0;
  const bool ended =
      leg.sending ? own.can.immediate->send_immediate(leg.peer, alike.slot, leg.view)
                  : own.can.immediate->receive_immediate(
                        leg.peer, alike.slot, {leg.destination, leg.view.count, leg.view.dtype, leg.view.device});
  if (!ended) {
    if (ring != nullptr) ring->take_back(entry, words, starter_.last());
    return false;
  }
  if (ring != nullptr) ring->end(entry, words, starter_.last());
  const std::uint64_t number = ++*alike.number;
  if (timeline != nullptr) trace(*timeline, began, op, details, number);
  return true;
}

bool Messages::is_alike(const Leg& leg) const {
  const Alike& last = leg.sending ? sent_ : received_;
  return last.number != nullptr && last.peer == leg.peer && last.tag == leg.tag && last.count == leg.view.count &&
         last.dtype == leg.view.dtype;
}

void Messages::trace(core::Trace& timeline, std::uint64_t began, Collective op, const CallDetails& details,
                     std::uint64_t number) {
  core::TracedCall call = core_.traced();
  call.begin = began;
  call.op = op;
  call.sequence = starter_.last();
  call.number = number;
  call.details = details;
  timeline.add(core_.cursor(), call);
}

Messages::Alike& Messages::alike(const Leg& leg) {
  Alike& last = leg.sending ? sent_ : received_;
  if (is_alike(leg)) return last;
  // An entry of a map keeps its address.
  std::uint64_t& number =
      (leg.sending ? core_.surroundings().sent : core_.surroundings().received)[{leg.peer, leg.tag}];
  last = {leg.peer, leg.tag, leg.view.count, leg.view.dtype, message_slot(core_.token(), leg), &number};
  return last;
}

PendingPtr Messages::start(std::string_view name, std::vector<Leg> legs, const Options& options) {
  const Use use(access_);
  PendingPtr pending = begin(name, std::move(legs), options, false);
  if (!pending->has_ended()) flight_.recording().note_start(*pending);
  flight_.progress_all(Flight::kGlance);
  return pending;
}

// Between GPUs, messages without a tag go by NCCL. Everything else needs the host.
Channel* Messages::channel_for(const Leg& leg) const {
  if (leg.peer == core_.rank()) return nullptr;
  const bool by_host = lanes_.hosted() != nullptr && (leg.tag != 0 || leg.peer == kAnyPeer);
  return by_host ? lanes_.hosted()->channel : lanes_.own().channel;
}

void Messages::check_leg(const Leg& leg) const {
  if (!leg.from_any) check_peer(leg.peer, leg.sending ? "destination" : "source", core_.shape());
  check_tensor(leg.view, leg.sending ? "what is sent" : "what is received", core_.shape());
  if (!leg.sending) check_written(leg.view, "the buffer to receive into", core_.shape());
  if (lanes_.hosted() != nullptr && leg.from_any && leg.tag == 0)
    throw core_.own_error(
        ErrorCode::invalid_argument,
        "recv_any: between GPUs, messages without a tag go by NCCL, which names their source; give those that "
        "may come from any rank a tag");
}

// What is received into may be no part of another buffer of the same call.
void Messages::check_apart(const std::vector<Leg>& legs) const {
  if (legs.size() < 2) return;
  std::vector<const Leg*> by_address;
  for (const Leg& leg : legs) {
    if (!leg.view.empty()) by_address.push_back(&leg);
  }
  const auto begin = [](const Leg* leg) { return static_cast<const std::byte*>(leg->view.data); };
  std::sort(by_address.begin(), by_address.end(),
            [&](const Leg* a, const Leg* b) { return std::less<>{}(begin(a), begin(b)); });
  const std::byte* end = nullptr;           // of those so far
  const std::byte* end_received = nullptr;  // of those so far that are received into
  for (const Leg* leg : by_address) {
    if (std::less<>{}(begin(leg), leg->sending ? end_received : end))
      throw core_.own_error(ErrorCode::invalid_argument,
                            "a buffer to receive into overlaps another buffer of the same call; use separate buffers");
    const std::byte* const own_end = begin(leg) + leg->view.bytes();
    end = std::max(end, own_end, std::less<>{});
    if (!leg->sending) end_received = std::max(end_received, own_end, std::less<>{});
  }
}

// A wait for a message to oneself that was never sent would not end. This is checked before anything is posted, so that
// the group stays usable.
void Messages::require_sent_to_self(const std::vector<Leg>& legs) const {
  const auto receives_own = [this](const Leg& leg) {
    return !leg.sending && !leg.done && (leg.peer == core_.rank() || (leg.peer == kAnyPeer && core_.size() == 1));
  };
  if (std::none_of(legs.begin(), legs.end(), receives_own)) return;
  std::map<int, std::ptrdiff_t> left = mailbox_.kept();  // by tag, after those who came before have taken theirs
  for (const PendingPtr& earlier : flight_.active()) {
    for (const Leg& leg : earlier->legs) left[leg.tag] -= receives_own(leg) ? 1 : 0;
  }
  for (const Leg& leg : legs) left[leg.tag] += leg.sending && leg.peer == core_.rank() ? 1 : 0;
  for (const Leg& leg : legs) {
    if (!receives_own(leg) || --left[leg.tag] >= 0) continue;
    throw core_.own_error(
        ErrorCode::invalid_argument,
        fmt::format("recv from oneself (tag {}), but nothing was sent to oneself before; this would wait for ever",
                    leg.tag));
  }
}

PendingPtr Messages::begin(std::string_view name, std::vector<Leg> legs, const Options& options, bool blocking) {
  core_.check_name(options.group);
  for (const Leg& leg : legs) check_leg(leg);
  check_apart(legs);
  if (blocking) require_sent_to_self(legs);
  for (Leg& leg : legs) leg.channel = channel_for(leg);
  Lane& own = lanes_.own();
  const bool by_gpu = std::ranges::any_of(legs, [&](const Leg& leg) { return leg.channel == own.channel; });
  if (by_gpu && own.can.device != nullptr) own.can.device->post_after(options.stream);
  auto staging = stager_.stage(legs, options.stream);
  for (const Leg& leg : legs) {
    if (DeviceOps* const gpu = lanes_.gpu_of(leg.channel))
      gpu->check({.collective = leg.sending ? Collective::send : Collective::recv, .in = leg.view});
  }
  PendingPtr pending = flight_.acquire();
  pending->name = Composite::current().empty() ? name : Composite::current();
  pending->collective = false;
  // The number in the record stays that of the last collective, because the search for a straggler compares
  // collectives.
  pending->sequence = starter_.last();
  pending->label = core_.label();
  const core::Trace* const timeline = core::Trace::on();
  pending->began = timeline != nullptr ? timeline->ticks() : 0;
  pending->started = !blocking;
  pending->timeout = core_.timeout_of(options);
  pending->stream = options.stream;
  pending->staging = std::move(staging);
  pending->legs = std::move(legs);
  pending->ends_on_device =
      own.can.device != nullptr && pending->staging == nullptr &&
      std::ranges::all_of(pending->legs, [&](const Leg& leg) { return leg.channel == own.channel; });
  try {
    // Messages between two ranks pair in the order of their posting, which must not depend on how long a copy takes.
    fetch(*pending);
    post(pending);
  } catch (...) {
    pending->end();
    if (pending->legs.size() == 1 && pending->legs.front().peer == core_.rank() && !core_.broken())
      throw;  // nothing has left this rank: the group stays usable
    flight_.fail(*pending);
  }
  note(*pending, blocking);
  return pending;
}

// Sends to oneself first, so that a receive of the same call finds what those from before leave; then receives before
// sends, so that what arrives has a place.
void Messages::post(const PendingPtr& pending) {
  bool to_self = false;
  for (Leg& leg : pending->legs) {
    if (!leg.sending || leg.peer != core_.rank()) continue;
    mailbox_.send_to_self(leg);
    to_self = true;
  }
  if (to_self) flight_.progress_all(Flight::kLook);  // earlier messages begin with those of this call, or later
  flight_.add(pending);
  for (const bool sending : {false, true}) {
    for (Leg& leg : pending->legs) {
      if (leg.sending == sending && !leg.done) mailbox_.post(leg, *pending);
      if (leg.done && !leg.sending) pending->source = core_.rank();
    }
  }
}

// Tells others what this rank does.
void Messages::note(Pending& pending, bool blocking) {
  for (const Leg& leg : pending.legs) {
    if (leg.posted) pending.request.fingerprint = leg.slot;
  }
  if (pending.request.fingerprint == 0) return;
  const Collective op = pending.legs.front().sending ? Collective::send : Collective::recv;
  if (blocking && flight_.active().size() == 1 && lanes_.own().can.device == nullptr && pending.name == to_string(op))
    return flight_.recording().record_briefly(pending);
  flight_.recording().record(pending);
}

// Copies the data of sends, and blocks until that is done. Messages that are sent in parts are an exception.
void Messages::fetch(Pending& pending) {
  if (!pending.staging) return;
  Staging& staging = *pending.staging;
  Diagnosis diagnosis = pending.diagnose(core_.surroundings());
  WaitContext wait = core_.waiting(Deadline::after(pending.timeout), &diagnosis);
  wait.describe("the copies from the GPU to the host");
  staging.fetch(pending.stream);
  const auto is_there = [&](const Leg& leg) {
    return !leg.sending || !leg.staged || leg.parts != nullptr || staging.fetched(leg.view.data) == leg.view.bytes();
  };
  for (int turn = 0; !std::ranges::all_of(pending.legs, is_there); ++turn) {
    wait.check();
    Flight::pause(turn);
  }
}

}  // namespace col::group
