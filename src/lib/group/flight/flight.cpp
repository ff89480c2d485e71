#include "group/flight/flight.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "backend/capabilities.hpp"
#include "core/clock/clock.hpp"
#include "core/job/background.hpp"
#include "core/job/record_words.hpp"
#include "core/kernels/mixed.hpp"
#include "core/log.hpp"
#include "core/mapping.hpp"
#include "group/call/checks.hpp"

namespace col::group {
namespace {

// Operations that are kept for reuse.
constexpr std::size_t kPooled = 64;
// How long destroying a group waits for what was dropped unfinished.
constexpr Duration kDrainTime = std::chrono::seconds(5);
// The same after an error of another group: for what the others have begun as well, not for those who have left.
constexpr Duration kDrainTimeAfterError = std::chrono::milliseconds(250);
// A wait that polls gives way to others this many times before it sleeps between looks.
// How long a wait that a capture holds up goes on: at most so long, and that part of the call's timeout.
constexpr Duration kLongestCapture = std::chrono::seconds(10);
constexpr int kPartForCapture = 8;
constexpr int kYields = 200;
constexpr Duration kPollPause = std::chrono::microseconds(50);

// Gives a member its value back.
template <class Value>
struct Restored {
  Value& member;
  const Value value;
  ~Restored() { member = value; }
};

// Memory that other ranks may have, too: plans keep in the output what is not the result yet, and may read the input
// when another rank has its result. They work on copies, and the result is copied in the end.
void set_apart(Pending& pending, Sides uses, exec::Operands& operands) {
  const Request& request = pending.request;
  const ConstTensorView in = uses.in ? request.in : ConstTensorView();
  const ConstTensorView out = uses.out ? ConstTensorView(request.out) : ConstTensorView();
  const auto may_be_shared = [](ConstTensorView side) {
    return !side.empty() && core::may_be_shared(side.data, side.bytes());
  };
  pending.run.apart.clear();
  if (pending.staging || (!may_be_shared(in) && !may_be_shared(out))) return;
  const auto* const in_begin = static_cast<const std::byte*>(in.data);
  const auto* const out_begin = static_cast<const std::byte*>(out.data);
  const bool is_inside = overlaps(in, out) && in.bytes() <= out.bytes();
  pending.run.apart.assign(out_begin, out_begin + out.bytes());
  if (!is_inside) pending.run.apart.insert(pending.run.apart.end(), in_begin, in_begin + in.bytes());
  if (uses.out) operands.output = pending.run.apart.data();
  if (uses.in) operands.input = pending.run.apart.data() + (is_inside ? in_begin - out_begin : out.bytes());
}

}  // namespace

void move_others_on() noexcept {
  if (core::Background::any()) core::Background::move_on.load(std::memory_order_relaxed)();
}

// ---- Trace

void Trace::record(bool on) {
  on_ = on;
  entries_.clear();
}

std::vector<TraceEntry> Trace::take() {
  return std::exchange(entries_, {});
}

void Trace::add_steps(Pending& ended) {
  for (const exec::Executed& executed : ended.run.executed)
    entries_.push_back(
        {ended.sequence, ended.request.collective, kept(ended.decision->algorithm), executed.round, executed.step});
  ended.run.executed.clear();
  if (on_ && !ended.decision->plan) add(ended.sequence, ended.request.collective, ended.decision->algorithm);
}

void Trace::add(std::uint64_t sequence, Collective collective, std::string_view algorithm) {
  entries_.push_back({sequence, collective, kept(std::string(algorithm))});
}

// ---- Flight

PendingPtr Flight::acquire() {
  for (const PendingPtr& pending : pool_) {
    if (pending.use_count() > 1 || !pending->has_ended()) continue;
    // Counted first, which acquires what those who have dropped it did before: they ask without the lock.
    PendingPtr reused = pending;
    reused->reset();
    return reused;
  }
  auto pending = std::make_shared<Pending>();
  pending->reset();
  if (pool_.size() < kPooled) pool_.push_back(pending);
  return pending;
}

void Flight::swap_pooled(const PendingPtr& kept, const PendingPtr& given) {
  std::erase(pool_, kept);
  if (given && pool_.size() < kPooled) pool_.push_back(given);
}

void Flight::fail(const Pending& pending) {
  Diagnosis diagnosis = pending.diagnose(core_.surroundings());
  core_.fail_with_current(diagnosis, pending.name);
}

void Flight::abandon(const Error& cause) noexcept {
  for (const PendingPtr& pending : active_) {
    pending->run.executor.abandon();
    try {  // for the channel to let go of its memory
      if (pending->ticket) pending->channel->test(*pending->ticket);
    } catch (...) {  // as it is broken
    }
    pending->ticket.reset();
    pending->error = cause;
    pending->end();
  }
  active_.clear();
}

void Flight::launch(const PendingPtr& pending) {
  active_.push_back(pending);
  try {
    if (!pending->staging) return execute(*pending);
    pending->phase = Pending::Phase::fetching;
    pending->staging->fetch(pending->stream);
  } catch (...) {
    fail(*pending);
  }
}

// The counts that the ranks of a node tell each other travel in the slot of the call, before its data.
void Flight::exchange_counts(Pending& pending) {
  const CountsExchange& exchange = *pending.decision->exchange;
  pending.run.received_counts.assign(exchange.received, 0);
  pending.run.executor.start(*pending.channel, {.plan = pending.decision->plan,
                                                .operands = {.input = exchange.sent.data(),
                                                             .output = pending.run.received_counts.data(),
                                                             .dtype = DType::uint64},
                                                .slot = pending.request.fingerprint});
}

void Flight::execute(Pending& pending) {
  if (pending.exchanges_counts()) return exchange_counts(pending);
  const Request& request = pending.request;
  const Decision& decision = *pending.decision;
  exec::Operands operands{.input = request.in.data,
                          .output = request.out.data,
                          .dtype = decision.dtype,
                          .op = request.op,
                          .ranks = core_.size(),
                          .widens = decision.widens,
                          .wide_input = decision.wide_input};
  set_apart(pending, sides_of(request, core_.shape()), operands);
  if (request.op.kind() == Op::Kind::premul_sum && row_of(request.collective).reduces()) {
    const std::size_t bytes = request.in.count * (decision.wide_input ? sizeof(float) : size_of(request.in.dtype));
    if (bytes > pending.run.scaled_bytes) {
      pending.run.scaled.reset(new std::byte[bytes]);
      pending.run.scaled_bytes = bytes;
    }
    core::premultiply_to(request.op.scale(), request.in.dtype, request.in.data, decision.wide_input,
                         pending.run.scaled.get(), request.in.count);
    operands.input = pending.run.scaled.get();
  }
  pending.run.executor.start(*pending.channel,
                             {.plan = pending.run.plan_of_counts ? pending.run.plan_of_counts : decision.plan,
                              .operands = operands,
                              .slot = pending.request.fingerprint,
                              .fault = core_.fault(),
                              .operation = pending.sequence,
                              .trace = trace_.is_on() ? &pending.run.executed : nullptr,
                              .timeline = steps_of(pending)});
}

void Flight::look_why(Pending& pending) {
  Watch& watch = pending.watch_in(core_.surroundings());
  try {
    watch.look();
  } catch (...) {
    core_.fail_with_current(watch.diagnosis(), pending.name);
  }
}

void Flight::copy_in(Pending& pending, WaitContext& wait) {
  pending.staging->fetch(pending.stream);
  await_copies(*pending.staging, wait);
}

void Flight::copy_back(Pending& pending, WaitContext& wait) {
  pending.staging->give_back(pending.stream);
  await_copies(*pending.staging, wait);
}

void Flight::pause(int turn) {
  if (turn < kYields)
    core::yield();
  else
    core::sleep_for(kPollPause);
}

std::optional<int> Flight::test(Channel& channel, Ticket ticket) const {
  backend::HoldingOps* const holds = reach_.hands_over ? nullptr : lanes_.holds_of(&channel);
  return holds != nullptr ? holds->look(ticket) : channel.test(ticket);
}

// True if it runs there alone.
bool Flight::is_on_gpu(const Pending& pending) const {
  if (lanes_.own().can.device == nullptr || pending.staging != nullptr) return false;
  const auto is_there = [&](const Leg& leg) { return leg.channel == lanes_.own().channel; };
  return pending.collective ? pending.ticket && pending.channel == lanes_.own().channel
                            : !pending.legs.empty() && std::ranges::all_of(pending.legs, is_there);
}

void Flight::progress_all(Reach reach) {
  const Reach before = std::exchange(reach_, reach);
  const Restored<Reach> restored{reach_, before};
  bool is_late = false;          // an operation on the GPU has not ended
  bool is_message_late = false;  // a message on the GPU: they all end in their order, and begin with a look at one
  for (std::size_t i = 0; i < active_.size();) {
    const PendingPtr pending = active_[i];
    try {
      const bool on_gpu = is_on_gpu(*pending), is_message = on_gpu && !pending->collective;
      const bool may_look = !(on_gpu && reach.to_first && is_late) && !(is_message && is_message_late);
      if (!may_look || !progress(*pending) || ranks_differ()) {
        is_late = is_late || on_gpu;
        is_message_late = is_message_late || is_message;
        ++i;
        continue;
      }
      finish(*pending);
    } catch (...) {
      fail(*pending);
    }
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    if (active_.empty()) end_record(*pending);
  }
}

void Flight::hand_over() {
  lanes_.own().can.holding->hand_over();
}

void Flight::progress_hosted() {
  const auto by_host = [this](const Channel* channel) {
    return channel == nullptr || channel == lanes_.hosted()->channel;
  };
  for (std::size_t i = 0; i < active_.size();) {
    const PendingPtr pending = active_[i];
    const bool is_hosted = pending->collective ? by_host(pending->channel)
                                               : std::all_of(pending->legs.begin(), pending->legs.end(),
                                                             [&](const Leg& leg) { return by_host(leg.channel); });
    if (!is_hosted || !progress(*pending)) {
      ++i;
      continue;
    }
    finish(*pending);
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool Flight::progress(Pending& pending) {
  using Phase = Pending::Phase;
  if (pending.phase == Phase::fetching) {
    if (!pending.staging->copied()) return false;
    pending.phase = Phase::running;
    execute(pending);
  }
  if (pending.phase == Phase::running) {
    if (!move_on(pending)) return false;
    if (!pending.staging) return true;
    pending.phase = Phase::returning;
    pending.staging->give_back(pending.stream);
  }
  return pending.staging->copied();
}

// The call itself, without the copies before and after.
bool Flight::move_on(Pending& pending) {
  if (pending.collective && pending.decision->plan) {
    if (!pending.run.executor.progress()) return false;
    if (pending.exchanges_counts()) {
      pending.run.plan_of_counts = pending.decision->exchange->plan_of(std::move(pending.run.received_counts));
      execute(pending);
      if (!pending.run.executor.progress()) return false;
    }
    if (!pending.run.apart.empty() && writes_output(pending.request, core_.shape()))
      std::memcpy(pending.request.out.data, pending.run.apart.data(), pending.request.out.bytes());
    pending.run.apart.clear();
    return true;
  }
  if (pending.collective) {
    if (pending.ticket && test(*pending.channel, *pending.ticket)) pending.ticket.reset();
    return !pending.ticket;
  }
  bool all = std::ranges::all_of(pending.parts, [](const PendingPtr& part) { return part->has_ended(); });
  for (Leg& leg : pending.legs)
    all = mailbox_.progress(leg, pending, reach_.hands_over ? nullptr : lanes_.holds_of(leg.channel)) && all;
  return all;
}

void Flight::finish(Pending& pending) {
  if (!pending.parts.empty()) {  // each of them has been noted
    pending.began_ns = 0;
    pending.parts.clear();
    return pending.end();
  }
  note_end(pending);
  pending.staging.reset();
  // A user's function may hold what its owner wants back.
  if (pending.request.op.kind() == Op::Kind::user) pending.request.op = {};
  if (pending.collective) trace_.add(pending);
  pending.end();
}

// Of several messages, each is one.
void Flight::note_end(Pending& pending) {
  core::Trace* const timeline = pending.began != 0 ? core::Trace::on() : nullptr;
  core::CallRing* const ring = core_.ring();
  std::uint64_t took_ns = pending.began_ns != 0 ? core::CallRing::time_since(std::exchange(pending.began_ns, 0)) : 0;
  if (pending.collective || pending.legs.size() < 2) {
    if (pending.entry && !pending.started)
      ring->end(*pending.entry, *pending.recorded, pending.sequence, took_ns);
    else if (ring != nullptr)
      ring->add(recorded(pending), pending.sequence,
                pending.entry && active_.size() <= 1 ? core::EntryState::brief : core::EntryState::ended, took_ns);
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

void Flight::note_start(Pending& pending) {
  core::CallRing* const ring = core_.ring();
  if (ring != nullptr && !pending.entry) ring->add(recorded(pending), pending.sequence, core::EntryState::started);
}

// A message may learn from whom it is while it is in flight.
const core::CallRing::Words& Flight::recorded(Pending& pending) const {
  if (!pending.recorded || !pending.collective) pending.recorded = core_.recorded(pending.kind(), details(pending));
  return *pending.recorded;
}

// With the number of the algorithm in the recorder, which is looked up once.
CallDetails Flight::details(const Pending& pending) const {
  CallDetails details = pending.details(core_.surroundings().peers);
  if (const Decision* const decision = pending.decision.get(); decision != nullptr && core_.record() != nullptr) {
    if (!decision->recorded) decision->recorded = core_.record()->algorithm(decision->algorithm);
    details.algorithm = *decision->recorded;
  }
  details.label = pending.label;
  return details;
}

void Flight::trace(core::Trace& timeline, const Pending& pending, Collective op, const CallDetails& details,
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

std::uint16_t Flight::traced_algorithm(const Pending& pending) {
  const Decision* const decision = pending.decision.get();
  if (decision == nullptr) return 0;
  if (!decision->traced) decision->traced = core::Names::number(decision->algorithm);
  return *decision->traced;
}

exec::StepTrace Flight::steps_of(const Pending& pending) {
  core::Trace* const timeline = pending.began != 0 ? core::Trace::on() : nullptr;
  if (timeline == nullptr) return {};
  core::TracedCall call = core_.traced();
  call.op = pending.request.collective;
  call.sequence = pending.sequence;
  call.algorithm = traced_algorithm(pending);
  return {.trace = timeline, .cursor = &core_.cursor(), .peers = &core_.surroundings().peers, .call = call};
}

void Flight::record(Pending& pending) {
  if (core_.record() == nullptr) return;
  core_.record()->begin(core_.name(), pending.sequence, pending.name, pending.request.fingerprint, details(pending));
  const std::optional<std::uint64_t> entry = std::exchange(pending.entry, std::nullopt);
  if (entry && !pending.started) core_.ring()->take_back(*entry);
}

void Flight::record_briefly(Pending& pending) {
  if (!core_.is_named_in_ring()) return record(pending);
  core::CallRing& ring = *core_.ring();
  pending.entry = pending.started ? ring.add(recorded(pending), pending.sequence, core::EntryState::brief_started)
                                  : ring.begin(recorded(pending), pending.sequence);
}

// What waits has the time to look at the clock.
void Flight::on_wait(Pending& pending) {
  if (pending.began_ns == 0) pending.began_ns = core::clock_ns();
  if (pending.entry) record(pending);
}

void Flight::end_record(const Pending& pending) {
  if (!pending.entry && core_.record() != nullptr) core_.record()->end(core_.name());
}

// Messages on the GPU begin together: whoever waits for what is there waits for those, too.
bool Flight::awaits_capture(const Pending* pending) const {
  const Lane& own = lanes_.own();
  const auto is_held_up = [&](const Pending& one) {
    if (one.has_ended()) return false;
    if (one.staging && one.staging->awaits_capture(one.stream)) return true;
    const bool is_there =
        one.collective ? one.channel == own.channel
                       : std::ranges::any_of(one.legs, [&](const Leg& leg) { return leg.channel == own.channel; });
    return is_there && own.can.holding != nullptr && own.can.holding->awaits_capture();
  };
  if (pending == nullptr) return own.can.holding != nullptr && own.can.holding->awaits_capture();
  return is_held_up(*pending) ||
         std::ranges::any_of(pending->parts, [&](const auto& part) { return is_held_up(*part); });
}

// No driver tells whose capture it is.
void Flight::outlast_capture(std::string_view call, Duration timeout, const Pending* pending) {
  if (!awaits_capture(pending)) return;
  const Deadline until = Deadline::after(std::min(kLongestCapture, timeout / kPartForCapture));
  WaitContext wait = core_.waiting(Deadline::after(timeout));
  for (int turn = 0; awaits_capture(pending); ++turn) {
    if (until.expired())
      throw core_.own_error(
          ErrorCode::unavailable,
          fmt::format(
              "{}: what was started before the capture of a stream goes on after it, and this thread may be the "
              "one to end it; end the capture first, or wait for what was started before it begins, or capture "
              "in a stream made with cudaStreamNonBlocking",
              call));
    try {
      wait.check();
    } catch (...) {  // nobody else takes an interruption, as the group stays whole
      WaitContext::take_interruption();
      throw;
    }
    pause(turn);
    progress_all();
  }
}

// Each as in a wait of its own, which names it if it does not end.
void Flight::await_parts(const Pending& pending) {
  const Deadline limit = Deadline::after(pending.timeout);
  const std::vector<PendingPtr> parts = pending.parts;  // finish() clears them
  for (const PendingPtr& part : parts) await(*part, limit);
}

void Flight::await(Pending& pending) {
  progress_all();
  if (!pending.parts.empty()) await_parts(pending);
  if (pending.spent > Duration::zero()) return await(pending, Deadline::after(pending.timeout, pending.spent));
  await(pending, pending.timeout);
}

void Flight::await_part(Pending& pending, const Deadline& deadline) {
  progress_all();
  await(pending, deadline);
}

void Flight::time_out(Pending& pending) {
  await(pending, Deadline::of(pending.timeout));
}

void Flight::hold_up(Stream stream, Pending& pending) {
  LateDiagnosis diagnosis(core_.surroundings(), pending);
  WaitContext wait = core_.waiting(pending.timeout, &diagnosis);
  // Messages are handed over only now, and the backend of the GPUs may wait for the peers, as in a start.
  if (lanes_.hosted() != nullptr) wait.meanwhile([this] { progress_hosted(); });
  DeviceOps& gpu = *lanes_.own().can.device;
  std::vector<std::shared_ptr<const DeviceEnd>> ends;
  // Null: the device has nothing of it. What has ended there, and is in flight all the same because ranks differ, holds
  // up nobody.
  const auto look = [&](const Pending& one) {
    if (one.collective && (one.ticket || !one.ends_on_device))
      ends.push_back(one.ticket ? gpu.end_of(*one.ticket, wait) : nullptr);
    for (const Leg& leg : one.legs) {
      if (!leg.done) ends.push_back(leg.posted ? gpu.end_of(leg.ticket, wait) : nullptr);
    }
  };
  try {
    look(pending);
    for (const PendingPtr& part : pending.parts) {
      if (!part->has_ended()) look(*part);
    }
  } catch (...) {
    core_.fail_with_current(diagnosis.get(), pending.name);
  }
  for (const auto& end : ends) {
    if (end == nullptr) throw ends_on_host(pending);
    end->hold_up(stream);
  }
}

Error Flight::ends_on_host(const Pending& pending) const {
  return core_.own_error(
      ErrorCode::unavailable,
      fmt::format("{}: the host alone sees its end, so that no stream can wait for it: that takes a "
                  "group of backend nccl, buffers on its GPU, and for a message another rank that is "
                  "named, and no tag; call wait() without a stream, and then give the stream its work",
                  pending.name));
}

template <class Limit>
void Flight::await(Pending& pending, const Limit& limit) {
  if (!pending.has_ended()) {
    LateDiagnosis diagnosis(core_.surroundings(), pending);
    WaitContext wait = core_.waiting(limit, &diagnosis);
    wait.before_waiting([this, &pending] { on_wait(pending); });
    try {
      await_until(pending, wait);
    } catch (...) {
      if (pending.entry) record(pending);
      core_.fail_with_current(diagnosis.get(), pending.name);
    }
  }
  if (pending.error) throw *pending.error;
}

void Flight::await_until(Pending& pending, WaitContext& wait) {
  for (int turn = 0; !pending.has_ended(); ++turn) {
    block(pending, wait, turn);
    progress_all();
  }
}

// Waits a little for `pending`: in the channel when nothing else needs this rank's hand meanwhile, else by looking
// again and again. Peers may wait for the other plans in flight first.
void Flight::block(Pending& pending, WaitContext& wait, int turn) {
  if (mailbox_.moves_parts()) {  // which are copied meanwhile, and the channel does not wait for that
    wait.check();
    return pause(mailbox_.count_idle_turn());
  }
  if (lanes_.hosted() != nullptr &&
      (active_.size() > 1 || pending.legs.size() > 1)) {  // two channels, and both may be needed
    wait.check();
    return pause(turn);
  }
  const auto plans =
      std::count_if(active_.begin(), active_.end(), [](const auto& p) { return p->collective && p->decision->plan; });
  if (pending.ticket && plans == 0) {
    pending.channel->wait(*pending.ticket, wait);
    pending.ticket.reset();
    return;
  }
  const bool runs = pending.phase == Pending::Phase::running;
  if (pending.collective && pending.decision->plan && plans == 1 && runs) {
    const exec::Executor& executor = pending.run.executor;
    wait.waiting(executor.step(), executor.peer(), executor.progress_made());
    return pending.run.executor.wait(wait);
  }
  const auto leg =
      std::find_if(pending.legs.begin(), pending.legs.end(), [](const Leg& l) { return l.posted && !l.done; });
  if (plans == 0 && leg != pending.legs.end()) {
    if (!pending.entry) wait.waiting(-1, leg->peer);  // the channel says so when it really waits
    return mailbox_.complete(*leg, pending, leg->channel->wait(leg->ticket, wait));
  }
  wait.check();
  pause(turn);
}

// An operation that ends meanwhile stays in flight, and whoever waits for it looks why.
bool Flight::ranks_differ() const noexcept {
  Announced* const announced = core_.surroundings().announced.get();
  return announced != nullptr && announced->differ();
}

void Flight::await_alike(WaitContext& wait) {
  for (int turn = 0; ranks_differ(); ++turn) {
    wait.describe("the ranks to say which calls they have made, because these differ");
    wait.check();
    pause(turn);
  }
}

// For a rank that leaves, and has nothing in flight.
std::optional<Error> Flight::last_difference() {
  if (core_.broken() || !active_.empty() || !ranks_differ()) return std::nullopt;
  const History& history = core_.surroundings().history;
  std::vector<Operation> last;
  if (history.last() > 0) last.push_back(history.operation(history.last(), core_.rank(), core_.size()));
  Diagnosis diagnosis(core_.surroundings(), std::move(last));
  try {
    WaitContext wait = core_.waiting(Deadline::after(std::min(core_.timeout(), kDrainTime)), &diagnosis);
    await_alike(wait);
  } catch (const Error& error) {
    core_.break_with(diagnosis.explain(error));
    if (error.code() == ErrorCode::mismatch) return core_.broken();
  }
  return std::nullopt;
}

void Flight::await_copies(Staging& staging, WaitContext& wait) {
  wait.describe("the copies between the GPU and the host");
  for (int turn = 0; !staging.copied(); ++turn) {
    wait.check();
    pause(turn);
  }
}

void Flight::await_collectives() {
  for (;;) {
    progress_all();
    const auto plan = std::find_if(active_.begin(), active_.end(), [](const auto& p) { return p->collective; });
    if (plan == active_.end()) return;
    const PendingPtr pending = *plan;
    await(*pending);
  }
}

std::optional<Error> Flight::drain(const std::optional<Error>& why) noexcept {
  try {
    const Deadline deadline =
        Deadline::after(std::min<Duration>(core_.timeout(), why ? kDrainTimeAfterError : kDrainTime));
    if (auto difference = last_difference()) return difference;
    for (int turn = 0; !core_.broken() && !active_.empty(); ++turn) {
      progress_all();
      if (active_.empty() || deadline.expired()) break;
      look_why(*active_.front());
      move_others_on();
      pause(turn);
    }
  } catch (const Error& e) {
    if (e.code() == ErrorCode::mismatch) return e;
    core::log::warn("group '{}': destroyed with operations in flight: {}", core_.name(), e.what());
  } catch (const std::exception& e) {
    core::log::warn("group '{}': destroyed with operations in flight: {}", core_.name(), e.what());
  }
  if (active_.empty()) return std::nullopt;
  core::log::warn("group '{}': destroyed with {} operations in flight, the first of them {}; wait for them before",
                  core_.name(), active_.size(), active_.front()->name);
  // The others are told, and some still wait for these.
  core_.break_with(why ? left_because(core_.surroundings(), core_.rank(), *why)
                       : core_.own_error(ErrorCode::aborted, "the group was destroyed with operations in flight"));
  return std::nullopt;
}

}  // namespace col::group
