// The part of Flight that waits.
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "backend/capabilities.hpp"
#include "core/log.hpp"
#include "group/flight/flight.hpp"

namespace col::group {
namespace {

// How long destroying a group waits for what was dropped unfinished.
constexpr Duration kDrainTime = std::chrono::seconds(5);
// The same after an error of another group: for what the others have begun as well, not for those who have left.
constexpr Duration kDrainTimeAfterError = std::chrono::milliseconds(250);
// How long a wait that a capture holds up goes on: at most so long, and that part of the call's timeout.
constexpr Duration kLongestCapture = std::chrono::seconds(10);
constexpr int kPartForCapture = 8;

}  // namespace

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
  for (const PendingPtr& part : parts) {
    if (!part->has_ended()) recording_.on_wait(*part);  // a wait that has a deadline from the begin does not say so
    await(*part, limit);
  }
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
    wait.before_waiting([this, &pending] { recording_.on_wait(pending); });
    try {
      await_until(pending, wait);
    } catch (...) {
      if (pending.entry) recording_.record(pending);
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
