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
#include "core/kernels/usual_floats.hpp"
#include "core/log.hpp"
#include "core/mapping.hpp"
#include "group/call/checks.hpp"

namespace col::group {
namespace {

// Operations that are kept for reuse.
constexpr std::size_t kPooled = 64;
// A wait that polls gives way to others this many times before it sleeps between looks.
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

void Flight::scale(const Request& request, const Decision& decision, std::unique_ptr<std::byte[]>& scaled,
                   std::size_t& room, exec::Operands& operands) {
  if (request.op.kind() != Op::Kind::premul_sum || !row_of(request.collective).reduces()) return;
  const std::size_t bytes = request.in.count * (decision.wide_input ? sizeof(float) : size_of(request.in.dtype));
  if (bytes > room) {
    scaled.reset(new std::byte[bytes]);
    room = bytes;
  }
  const core::UsualFloats floats(request.order == Order::tree);
  core::premultiply_to(request.op.scale(), request.in.dtype, request.in.data, decision.wide_input, scaled.get(),
                       request.in.count);
  operands.input = scaled.get();
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
  scale(request, decision, pending.run.scaled, pending.run.scaled_bytes, operands);
  pending.run.executor.start(*pending.channel,
                             {.plan = pending.run.plan_of_counts ? pending.run.plan_of_counts : decision.plan,
                              .operands = operands,
                              .slot = pending.request.fingerprint,
                              .fault = core_.fault(),
                              .operation = pending.sequence,
                              .trace = trace_.is_on() ? &pending.run.executed : nullptr,
                              .timeline = recording_.steps_of(pending)});
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
    if (active_.empty()) recording_.end_record(*pending);
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

// Each of the parts has been noted.
void Flight::finish_whole(Pending& pending) {
  pending.began_ns = 0;
  pending.parts.clear();
  pending.end();
}

}  // namespace col::group
