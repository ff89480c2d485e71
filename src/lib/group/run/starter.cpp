#include "group/run/starter.hpp"

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/capabilities.hpp"
#include "core/clock/clock.hpp"
#include "core/job/record_words.hpp"
#include "core/kernels/reduce.hpp"
#include "exec/memory.hpp"
#include "group/call/checks.hpp"
#include "group/call/composite.hpp"

namespace col::group {
namespace {

// A look at the clock is nothing beside a call of so many bytes.
constexpr std::size_t kLong = std::size_t{32} << 10;

// What a collective does in a world of one rank, which needs no backend.
void copy_own(const Request& request) {
  const Collective c = request.collective;
  if (c == Collective::barrier || c == Collective::broadcast || c == Collective::exscan) return;
  if (request.in.data != request.out.data && !request.in.empty())
    std::memcpy(request.out.data, request.in.data, request.in.bytes());
  // Every other operator leaves the only contribution as it is; the average of one is itself.
  if (row_of(c).reduces() && request.op.kind() == Op::Kind::premul_sum)
    core::premultiply(request.op.scale(), request.out.dtype, request.out.data, request.out.count);
}

// In the tree's order it has any number of contributions: a plan without messages.
void fold_own(const Request& request, const Decision& decision) {
  exec::Operands operands{.input = request.in.data,
                          .output = request.out.data,
                          .dtype = decision.dtype,
                          .op = request.op,
                          .widens = decision.widens,
                          .wide_input = decision.wide_input};
  std::unique_ptr<std::byte[]> scaled;
  std::size_t room = 0;
  Flight::scale(request, decision, scaled, room, operands);
  exec::Memory memory;
  memory.prepare(*decision.plan, operands);
  Round round;
  for (std::size_t index = 0; index < decision.plan->rounds; ++index) {
    decision.plan->round(index, round);
    for (const Step& step : round.steps()) memory.run(step);
  }
}

}  // namespace

Starter::Starter(Core& core, Lanes& lanes, Stager& stager, Flight& flight)
    : core_(core),
      lanes_(lanes),
      stager_(stager),
      flight_(flight),
      // A fault strikes at the begin of a call, and calls that are compared first begin after that.
      may_be_brief_(core.fault() == nullptr && !core.settings().compare_first &&
                    (core.ring() == nullptr || core.is_named_in_ring())),
      sequence_(exec::FaultHook::counted_before(core.fault())) {}

PendingPtr Starter::prepare(Lane* over, Request&& request, const Options& options, bool asynchronous, Piece piece) {
  check(request, core_.shape());
  Lane& lane = over != nullptr ? *over : lanes_.lane_for(request, wishes_of(options, asynchronous));
  auto staging = stager_.stage(request, lane.device);
  if (lane.channel == nullptr) {
    run_alone(lane, request, options, staging.get());
    return nullptr;
  }
  auto decision = lane.dispatcher.decide(request, wishes_of(options, asynchronous));
  request.algorithm = decision->native;
  request.shares = decision->shares;
  if (lane.can.device != nullptr) {
    ask_device(*lane.can.device, request);
    // A capture that is under way now is mostly this thread's own capture.
    flight_.outlast_capture(to_string(request.collective),
                            request.is_captured ? Duration::zero() : core_.timeout_of(options));
  }

  PendingPtr pending = flight_.acquire();
  pending->channel = lane.channel;
  pending->staging = std::move(staging);
  pending->stream = request.stream;
  pending->ends_on_device = lane.can.device != nullptr && pending->staging == nullptr;
  const std::string_view part_of = Composite::current();
  pending->name = part_of.empty() ? to_string(request.collective) : part_of;
  pending->collective = true;
  pending->timeout = core_.timeout_of(options);
  pending->decision = std::move(decision);
  pending->form = {asynchronous, options.compress, pending->decision->algorithm,
                   piece,        part_of,          pending->decision->length};
  pending->asked_algorithm = options.algorithm;
  pending->asked_order = asked_order(options);
  pending->in_counts.assign(request.in_counts.begin(), request.in_counts.end());
  pending->out_counts.assign(request.out_counts.begin(), request.out_counts.end());
  request.in_counts = pending->in_counts;
  request.out_counts = pending->out_counts;
  pending->call = fingerprint(core_.token(), request, pending->form);
  pending->started = asynchronous;
  pending->is_long = !asynchronous && common_view(request).bytes() >= kLong;
  pending->request = std::move(request);
  return pending;
}

void Starter::prepare_native(Pending& pending) {
  backend::PrepareOps* const channel = lanes_.own().can.prepares;
  if (channel != nullptr && pending.channel == lanes_.own().channel && !pending.decision->plan)
    pending.native = channel->prepare(pending.request);
  pending.is_brief = may_be_brief_ && pending.native != nullptr && !pending.started && pending.form.part_of.empty();
}

void Starter::ask_device(DeviceOps& gpu, Request& request) {
  request.is_captured = gpu.is_captured(request.stream);
  gpu.check(request);
}

// A world of one, or of none other than this rank where its device cannot do what is asked.
void Starter::run_alone(Lane& lane, const Request& request, const Options& options, Staging* staging) {
  const auto do_own = [&] {
    if (request.order != Order::tree) return copy_own(request);
    fold_own(request, *lane.dispatcher.decide(request, wishes_of(options, false)));
  };
  if (staging == nullptr) return do_own();
  WaitContext wait = core_.waiting(Deadline::after(core_.timeout_of(options)));
  staging->fetch(request.stream);
  Flight::await_copies(*staging, wait);
  do_own();
  staging->give_back(request.stream);
  Flight::await_copies(*staging, wait);
}

[[gnu::always_inline]] inline void Starter::number(Pending& pending) noexcept {
  pending.sequence = ++sequence_;
  // Of all calls so far: what ranks have done differently shows at the next call that they make together, even where
  // the data of that one did not show it (a root that two ranks disagree about). As core::Hash does it, of values that
  // are hashes.
  calls_ = (calls_ ^ pending.call) * 0x9e3779b97f4a7c15ULL;
  calls_ ^= calls_ >> 32;
  pending.request.fingerprint = calls_;
}

// Most calls end here. First goes out what peers wait for; the ring is told while that is on its way, and holds up
// nobody.
void Starter::run_again(const PendingPtr& known, const Options& options) {
  Pending& pending = *known;
  const bool tells_more = core::Trace::on() != nullptr || flight_.trace().is_on() || pending.label != core_.label();
  if (!pending.is_brief || tells_more || !flight_.active().empty()) return run_at_length(known, options);
  number(pending);
  const bool has_begun = pending.native->begin();
  core_.surroundings().history.add(pending, sequence_);
  core::CallRing* const ring = core_.ring();
  const std::uint64_t entry = ring != nullptr ? ring->begin(*pending.recorded, pending.sequence) : 0;
  const std::uint64_t began_ns = pending.is_long ? core::clock_ns() : 0;
  if (has_begun && pending.native->end()) {
    if (ring == nullptr) return;
    return ring->end(entry, *pending.recorded, pending.sequence,
                     began_ns != 0 ? core::CallRing::time_since(began_ns) : 0);
  }
  // It has to wait.
  pending.begin_again();
  pending.timeout = core_.timeout_of(options);
  pending.began = 0;
  pending.began_ns = began_ns;
  pending.entry = ring != nullptr ? std::optional(entry) : std::nullopt;
  end(known);
}

void Starter::run_at_length(const PendingPtr& known, const Options& options) {
  begin_again(*known, options);
  end(known);
}

void Starter::begin_again(Pending& known, const Options& options) {
  if (DeviceOps* const gpu = lanes_.gpu_of(known.channel)) ask_device(*gpu, known.request);
  known.begin_again();
  known.timeout = core_.timeout_of(options);
  begin(known, true);
}

void Starter::begin(Pending& pending, bool comes_again, const Deadline* until) {
  number(pending);
  if (pending.label != core_.label()) {
    pending.label = core_.label();
    pending.recorded.reset();
  }

  const core::Trace* const timeline = core::Trace::on();
  pending.began = timeline != nullptr ? timeline->ticks() : 0;
  core_.surroundings().history.add(pending, sequence_);
  if (Announced* const announced = core_.surroundings().announced.get())
    announced->collective(sequence_, pending.request.fingerprint);
  pending.entry.reset();
  if (comes_again && flight_.active().empty() && pending.form.part_of.empty())
    flight_.recording().record_briefly(pending);
  else
    flight_.recording().record(pending);
  if (pending.started)
    flight_.recording().note_start(pending);
  else if (pending.is_long)
    pending.began_ns = core::clock_ns();
  // Nobody waits for a call in a graph: it is compared when it becomes part of it, and no more when that runs.
  if (core_.settings().compare_first || pending.request.is_captured) compare_first(pending, until);
}

void Starter::launch(const PendingPtr& pending) {
  if (pending->decision->plan)
    flight_.launch(pending);
  else
    start_native(pending);
}

void Starter::compare_first(Pending& pending, const Deadline* until) {
  Diagnosis diagnosis = pending.diagnose(core_.surroundings());
  diagnosis.tell_others();
  WaitContext wait = until != nullptr ? core_.waiting(*until, &diagnosis) : core_.waiting(pending.timeout, &diagnosis);
  wait.before_waiting([this, &pending] { flight_.recording().on_wait(pending); });
  try {
    // Peers may need what is in flight here before they come to this call.
    diagnosis.compare_first(wait, [this] { flight_.progress_all(); });
  } catch (...) {
    core_.fail_with_current(diagnosis, pending.name);
  }
  diagnosis.withdraw();
  wait.resume();
  if (!pending.started) pending.spent = pending.timeout - wait.deadline().remaining();
}

// The wait of a call that blocks. Most calls end without it, so it is made when it is asked for.
class Starter::Wait {
 public:
  Wait(Starter& of, Pending& pending) : of_(of), pending_(pending) {}

  WaitContext& get() { return made().wait; }
  Diagnosis& diagnosis() { return made().diagnosis.get(); }

 private:
  struct Made {
    Made(Starter& of, Pending& pending)
        : diagnosis(of.core_.surroundings(), pending),
          wait(of.core_.waiting(pending.timeout, &diagnosis, pending.spent)) {
      wait.before_waiting([&of, &pending] { of.flight_.recording().on_wait(pending); });
    }
    LateDiagnosis diagnosis;
    WaitContext wait;
  };
  [[gnu::noinline]] Made& made() { return made_ ? *made_ : made_.emplace(of_, pending_); }

  Starter& of_;
  Pending& pending_;
  std::optional<Made> made_;
};

// A backend's own collective may block this rank, so that what was started before must go on meanwhile, or end first:
// peers may wait for it.
void Starter::end(const PendingPtr& call) {
  Pending& pending = *call;
  const bool goes_beside = pending.decision->starts && !flight_.active().empty();
  if (pending.decision->plan || goes_beside) {
    if (pending.entry && goes_beside) flight_.recording().record(pending);
    launch(call);
    return flight_.await(pending);
  }
  if (!flight_.active().empty()) {
    flight_.await_collectives();
    flight_.recording().record(pending);  // it told of those
  }
  Wait wait(*this, pending);
  try {
    // It has no steps that could be counted from here: a fault strikes at its begin.
    core_.pass_fault(pending.sequence);
    if (pending.staging) Flight::fetch(pending, wait.get());
    pending.channel->native(pending.request, wait.get());
    if (core_.surroundings().announced != nullptr) flight_.await_alike(wait.get());
    if (pending.staging) Flight::give_back(pending, wait.get());
    flight_.finish(pending);
    flight_.recording().end_record(pending);
  } catch (...) {
    if (pending.entry) flight_.recording().record(pending);
    core_.fail_with_current(wait.diagnosis(), pending.name);
  }
}

void Starter::start_native(const PendingPtr& pending) {
  LateDiagnosis diagnosis(core_.surroundings(), *pending);
  WaitContext wait = core_.waiting(pending->timeout, &diagnosis, pending->spent);
  // The backend of the GPUs may wait for the peers before it starts, and these for what runs over the host.
  if (lanes_.hosted() != nullptr) wait.meanwhile([this] { flight_.progress_hosted(); });
  try {
    core_.pass_fault(pending->sequence);
    flight_.add(pending);
    // All ranks start these in the same order: the copy does not wait for its turn.
    Flight::fetch(*pending, wait);
    pending->ticket =
        pending->native != nullptr ? pending->native->start() : pending->channel->start_native(pending->request, wait);
    if (pending->request.is_captured && pending->form.asynchronous)
      pending->in_graph = lanes_.gpu_of(pending->channel)->end_of(*pending->ticket, wait);
  } catch (...) {
    core_.fail_with_current(diagnosis.get(), pending->name);
  }
}

}  // namespace col::group
