#include "group/flight/recording.hpp"

#include <optional>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/job/record_words.hpp"

namespace col::group {

// Each of several messages is one.
void Recording::note_end(Pending& pending, bool is_last) {
  core::Trace* const timeline = pending.began != 0 ? core::Trace::on() : nullptr;
  core::CallRing* const ring = core_.ring();
  // The record has told of another call since this one was started: it stays as it is.
  if (pending.entry && pending.started && ring->has_record_since(*pending.entry)) pending.entry.reset();
  std::uint64_t took_ns = pending.began_ns != 0 ? core::CallRing::time_since(std::exchange(pending.began_ns, 0)) : 0;
  if (pending.collective || pending.legs.size() < 2) {
    if (pending.entry && !pending.started)
      ring->end(*pending.entry, *pending.recorded, pending.sequence, took_ns);
    else if (ring != nullptr)
      ring->add(recorded(pending), pending.sequence,
                pending.entry && is_last ? core::EntryState::brief : core::EntryState::ended, took_ns);
    if (timeline == nullptr) return;
    const bool is_numbered = !pending.legs.empty() && pending.legs.front().numbered;
    return trace(*timeline, pending, pending.kind(), details(pending), is_numbered ? pending.legs.front().number : 0);
  }
  for (const Leg& leg : pending.legs) {
    const int peer = leg.peer == kAnyPeer ? pending.source : leg.peer;
    const int partner = peer >= 0 ? core_.world_rank(peer) : -1;
    const Collective op = leg.sending ? Collective::send : Collective::recv;
    const CallDetails details{
        .dtype = leg.view.dtype, .count = leg.view.count, .partner = partner, .tag = leg.tag, .label = pending.label};
    if (ring != nullptr)
      ring->add(core_.recorded(op, details), pending.sequence, core::EntryState::ended, std::exchange(took_ns, 0));
    if (timeline != nullptr) trace(*timeline, pending, op, details, leg.numbered ? leg.number : 0);
  }
}

void Recording::note_start(Pending& pending) {
  core::CallRing* const ring = core_.ring();
  if (ring != nullptr && !pending.entry) ring->add(recorded(pending), pending.sequence, core::EntryState::started);
}

// A message may learn from whom it is while it is in flight.
const core::CallRing::Words& Recording::recorded(Pending& pending) const {
  if (!pending.recorded || !pending.collective) pending.recorded = core_.recorded(pending.kind(), details(pending));
  return *pending.recorded;
}

// With the number of the algorithm in the recorder, which is looked up once.
CallDetails Recording::details(const Pending& pending) const {
  CallDetails details = pending.details(core_.surroundings().peers);
  if (const Decision* const decision = pending.decision.get(); decision != nullptr && core_.record() != nullptr) {
    if (!decision->recorded) decision->recorded = core_.record()->algorithm(decision->algorithm);
    details.algorithm = *decision->recorded;
  }
  details.label = pending.label;
  return details;
}

void Recording::trace(core::Trace& timeline, const Pending& pending, Collective op, const CallDetails& details,
                      std::uint64_t number) {
  core::TracedCall call = core_.traced();
  call.kind = pending.started ? core::TraceKind::started : core::TraceKind::call;
  call.begin = pending.began;
  call.op = op;
  call.sequence = pending.sequence;
  call.algorithm = traced_algorithm(pending);
  call.number = number;
  call.details = details;
  call.details.label = pending.label;
  timeline.add(core_.cursor(), call);
}

std::uint16_t Recording::traced_algorithm(const Pending& pending) {
  const Decision* const decision = pending.decision.get();
  if (decision == nullptr) return 0;
  if (!decision->traced) decision->traced = core::Names::number(decision->algorithm);
  return *decision->traced;
}

exec::StepTrace Recording::steps_of(const Pending& pending) {
  core::Trace* const timeline = pending.began != 0 ? core::Trace::on() : nullptr;
  if (timeline == nullptr) return {};
  core::TracedCall call = core_.traced();
  call.op = pending.request.collective;
  call.sequence = pending.sequence;
  call.algorithm = traced_algorithm(pending);
  return {.trace = timeline, .cursor = &core_.cursor(), .peers = &core_.surroundings().peers, .call = call};
}

void Recording::record(Pending& pending) {
  if (core_.record() == nullptr) return;
  core_.record()->begin(core_.name(), pending.sequence, pending.name, pending.request.fingerprint, details(pending));
  const std::optional<std::uint64_t> entry = std::exchange(pending.entry, std::nullopt);
  if (entry && !pending.started) core_.ring()->take_back(*entry, *pending.recorded, pending.sequence);
}

void Recording::record_briefly(Pending& pending) {
  if (!core_.is_named_in_ring()) return record(pending);
  core::CallRing& ring = *core_.ring();
  pending.entry = pending.started ? ring.add(recorded(pending), pending.sequence, core::EntryState::brief_started)
                                  : ring.begin(recorded(pending), pending.sequence);
}

// A call that waits has the time to look at the clock. What was started before may not be what the record tells of:
// that is what was started last, of any group. Of a message that is not posted yet, nobody is told.
void Recording::on_wait(Pending& pending) {
  if (pending.began_ns == 0) pending.began_ns = core::clock_ns();
  if (pending.entry || (pending.started && pending.request.fingerprint != 0)) record(pending);
}

void Recording::on_brief_wait(Pending& pending) {
  const RankRecord* const record = core_.record();
  if (record == nullptr) return;
  const RankActivity told = record->read();
  const bool is_told = told.sequence == pending.sequence && told.fingerprint == pending.request.fingerprint &&
                       is_same_group(told.group, core_.name());
  if (!is_told) on_wait(pending);
}

}  // namespace col::group
