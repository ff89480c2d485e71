// A group's life, and its collectives.
#include "group/state.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "core/hash.hpp"
#include "core/kernels/mixed.hpp"
#include "core/log.hpp"
#include "group/call/checks.hpp"
#include "group/call/composite.hpp"
#include "group/call/use.hpp"
#include "group/diagnosis/error_file.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/flight/progress_thread.hpp"
#include "group/join/host.hpp"
#include "group/join/world_ranks.hpp"

namespace col {
namespace {

// Operations that are kept for reuse.
constexpr std::size_t kPooled = 64;
// Calls that are known when they come again.
constexpr std::size_t kRepeated = 128;

group::CallWishes wishes_of(const Options& options, bool asynchronous) {
  return {options.algorithm, asynchronous, options.deterministic, options.compress};
}

std::span<const NativeEntry> natives_of(const Channel* channel) {
  return channel != nullptr ? channel->native_entries() : std::span<const NativeEntry>();
}

}  // namespace

Group::State::Lane::Lane(const group::GroupParts& parts, Channel* over, const std::string& backend,
                         const group::CallSettings& settings)
    : channel(over),
      gpu(dynamic_cast<DeviceExtension*>(over)),
      in_parts(dynamic_cast<PartsExtension*>(over)),
      device(gpu != nullptr ? gpu->device() : Device()),
      dispatcher({parts.surroundings.group, parts.surroundings.rank, static_cast<int>(parts.surroundings.peers.size()),
                  device.type},
                 group::nodes_of(parts.surroundings.peers), backend, natives_of(over), settings) {}

Group::State::State(group::GroupParts parts, group::GroupHost host)
    : parts_(std::move(parts)),
      host_(std::move(host)),
      own_(parts_, parts_.channel.get(), parts_.backend, *host_.settings),
      fault_(exec::FaultHook::meant(host_.settings->fault, host_.global_rank, name())),
      sequence_(exec::FaultHook::counted_before(fault_)) {
  parts_.surroundings.post_others = [this] {
    if (!host_.all_groups) return;
    for (Group& other : host_.all_groups()) other.state().post_calls();
  };
  if (own_.device.type != Device::Type::cpu)
    hosted_.emplace(parts_, parts_.host_channel.get(), parts_.host_backend, *host_.settings);
}

Group::State::~State() {
  if (const auto error = destroy()) core::log::warn("{}", error->what());
  // Left there by a call that was still going on when the group was destroyed.
  if (!is_forked_child()) group::clear_board(parts_.surroundings);
}

bool Group::State::is_forked_child() const {
  return fork_guard_.is_forked_child();
}

std::optional<Error> Group::State::destroy(const std::optional<Error>& why) noexcept {
  if (destroyed_.exchange(true)) return std::nullopt;
  if (is_forked_child()) {  // nobody else is here, whatever in_use_ says of the parent's threads
    close_channels();
    return std::nullopt;
  }
  // A call in progress, maybe in another thread, still uses the channel: it is ended, and the channel goes with the
  // last handle.
  if (is_inside() || in_use_.exchange(true, std::memory_order_acquire)) {
    abort_channels(own_error(ErrorCode::aborted, "the group was destroyed"));
    return std::nullopt;
  }
  std::optional<Error> error;
  {
    const std::lock_guard lock(mutex_);
    error = drain();
    leave_to_others(false);
    // Before the connections close: a rank that notices the closing then finds it.
    if (auto difference = group::leave_board(parts_.surroundings, broken_.has_value(), why); difference && !error)
      error = group::with_world_rank(*difference, parts_.surroundings.peers);
    close_channels();
    group::clear_board(parts_.surroundings);
  }
  in_use_.store(false, std::memory_order_release);
  return error;
}

void Group::State::leave() {
  if (!destroyed_ && host_.destroy_group) host_.destroy_group(name());
}

void Group::State::close_channels() noexcept {
  parts_.channel.reset();
  parts_.host_channel.reset();
}

void Group::State::abort_channels(const Error& cause) noexcept {
  if (parts_.channel) parts_.channel->abort(cause);
  if (parts_.host_channel) parts_.host_channel->abort(cause);
}

std::optional<Error> Group::State::broken_by() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock ? broken_ : std::nullopt;
}

void Group::State::post_calls() {
  // acquire pairs with Use. The lock may be this thread's.
  if (is_inside() || in_use_.load(std::memory_order_acquire)) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock && !destroyed_ && !broken_) group::post_calls(parts_.surroundings);
}

Error Group::State::error_about(int culprit, ErrorCode code, std::string_view message) const {
  return group::with_world_rank(Error(code, message, name(), culprit), parts_.surroundings.peers);
}

void Group::State::require_usable() const {
  if (is_forked_child())
    throw own_error(
        ErrorCode::not_initialized,
        "this process was forked after the group was made, and is no member of it; make groups after fork()");
  if (destroyed_)
    throw own_error(ErrorCode::not_initialized, "the group was destroyed; init_collective_group makes it anew");
}

// A method is called on a group; a name in its options can only be a slip.
void Group::State::check_name(std::string_view named) const {
  if (broken_)
    throw Error(ErrorCode::aborted,
                fmt::format("the group broke before ({}: {}); destroy it and create it anew",
                            to_string(broken_->code()), broken_->message()),
                name(), broken_->rank(), broken_->world_rank());
  check_named(named);
}

void Group::State::check_named(std::string_view named) const {
  if (named == Options().group || named == name()) return;
  throw own_error(
      ErrorCode::invalid_argument,
      fmt::format("called on this group, but the options name group '{}'; call it on that group, or use the free "
                  "function",
                  named));
}

Duration Group::State::timeout_of(const Options& options) const {
  return std::min(options.timeout > Duration::zero() ? options.timeout : parts_.timeout, Deadline::kMaxBudget);
}

// ---- Collectives

void Group::State::run(Request request, const Options& options) {
  const Use use(*this);
  run_in_use(std::move(request), options);
}

// Requires: this thread has a Use.
void Group::State::run_in_use(Request request, const Options& options) {
  if (parts_.channel) {
    // A training step makes the calls of the last one again: they need no new checks, and no new decision.
    PendingPtr& known = slot_of(request);
    if (known && known->is_repeated_by(request, wishes_of(options, false))) {
      check_name(options.group);
      request.algorithm = known->decision->native;
      if (DeviceExtension* const gpu = gpu_of(known->channel)) gpu->check(request);
      known->ended = false;
      known->watch.reset();
      known->timeout = timeout_of(options);
      announce(*known);
      return run_native(known);
    }
  }
  run_over(nullptr, std::move(request), options);
}

void Group::State::run_on_host(Request request, const Options& options) {
  const Use use(*this);
  run_over(host_lane(), std::move(request), options);
}

void Group::State::run_over(Lane* lane, Request request, const Options& options) {
  if (parts_.may_stage) {
    check_name(options.group);
    group::check(request, shape());
    lane = lane != nullptr ? lane : &lane_for(request, options, false);
    if (const std::size_t elements = elements_of_piece(*lane, request, options); elements != 0)
      return run_in_pieces(*lane, request, options, elements);
  }
  // Once it has returned, no call that came before it uses a buffer, though its Work was dropped.
  if (request.collective == Collective::barrier) await_collectives();
  const PendingPtr pending = begin(lane, std::move(request), options, false);
  if (!pending) return;
  if (pending->decision->plan) return await(*pending);
  // Asked now: finish() drops a user's operator, and copies.
  const bool may_come_again = pending->request.op.kind() == Op::Kind::builtin && !pending->staging;
  run_native(pending);
  if (may_come_again) keep(pending);
}

// In the place of one that was made before, which may be used for something else.
void Group::State::keep(const PendingPtr& pending) {
  std::erase(pool_, pending);
  const PendingPtr old = std::exchange(slot_of(pending->request), pending);
  if (old && pool_.size() < kPooled) pool_.push_back(old);
}

// Where a call is kept that runs natively, by its buffers.
Group::State::PendingPtr& Group::State::slot_of(const Request& request) {
  repeated_.resize(kRepeated);
  const std::uint64_t hash = core::Hash()
                                 .add(static_cast<int>(request.collective))
                                 .add(reinterpret_cast<std::uintptr_t>(request.in.data))
                                 .add(reinterpret_cast<std::uintptr_t>(request.out.data))
                                 .add(request.in.count)
                                 .add(request.out.count)
                                 .value();
  return repeated_[hash % kRepeated];
}

Work Group::State::start(Request request, const Options& options) {
  const Use use(*this);
  PendingPtr pending = begin(nullptr, std::move(request), options, true);
  if (!pending) return {};
  progress_all();
  return work_of(std::move(pending));
}

Work Group::State::work_of(PendingPtr pending) {
  if (host_.settings->progress_thread && !pending->ended) group::ProgressThread::instance().watch(shared_from_this());
  return Work(std::make_shared<Work::Handle>(Work::Handle{shared_from_this(), std::move(pending)}));
}

// No use of the group: another thread may be in a call of it.
std::string Group::State::explain(Collective collective, std::size_t bytes, DType dtype, const Options& options) const {
  require_usable();
  check_named(options.group);
  if (!parts_.channel) return "self: a world of one moves no data";
  if (row_of(collective).is_message) return "a message has no algorithm";
  if (row_of(collective).rooted) group::check_peer(options.root, "root", shape());
  const auto n = static_cast<std::size_t>(size());
  const std::size_t count = size_of(dtype) == 0 ? 0 : bytes / size_of(dtype);
  const std::vector<std::size_t> counts(row_of(collective).has_counts() ? n : 0, count / n);
  // The longer side of a call that cuts a vector into blocks, and the shorter; no memory, as nothing runs.
  const ConstTensorView whole(nullptr, count / n * n, dtype), block(nullptr, count / n, dtype);
  Request request;
  request.collective = collective;
  request.op = options.op;
  request.root = options.root;
  request.in = {nullptr, count, dtype};
  request.out = {nullptr, count, dtype};
  const CollectiveRow& row = row_of(collective);
  if (row.in == Extent::blocks) request.in_counts = counts;
  if (row.out == Extent::blocks) request.out_counts = counts;
  if (row.has_blocks()) {
    request.in = row.in == Extent::blocks ? whole : block;
    request.out.count = row.out == Extent::blocks ? whole.count : block.count;
  }
  const Lane& lane = lane_for(request, options, false);
  const std::size_t elements = elements_of_piece(lane, request, options);
  if (elements == 0) return lane.dispatcher.explain(request, wishes_of(options, false));
  request.in.count = request.out.count = elements;
  return fmt::format("in pieces of {} elements: {}", elements,
                     lane.dispatcher.explain(request, wishes_of(options, false)));
}

// Depends only on what all ranks know, so all ranks decide alike, wherever their buffers are.
const Group::State::Lane& Group::State::lane_for(const Request& request, const Options& options,
                                                 bool asynchronous) const {
  if (!hosted_ || own_.dispatcher.can_run_natively(request, wishes_of(options, asynchronous))) return own_;
  return *hosted_;
}

Group::State::Lane& Group::State::lane_for(const Request& request, const Options& options, bool asynchronous) {
  return const_cast<Lane&>(std::as_const(*this).lane_for(request, options, asynchronous));
}

// Checks the call, gives it its number, and launches it when it need not block. `over`: null for that which serves it.
Group::State::PendingPtr Group::State::begin(Lane* over, Request&& request, const Options& options, bool asynchronous,
                                             group::Piece piece) {
  check_name(options.group);
  group::check(request, shape());
  Lane& lane = over != nullptr ? *over : lane_for(request, options, asynchronous);
  auto staging = stage(request, lane.device);
  if (lane.channel == nullptr) {
    run_alone(request, options, staging.get());
    return nullptr;
  }
  auto decision = lane.dispatcher.decide(request, wishes_of(options, asynchronous));
  request.algorithm = decision->native;
  if (lane.gpu != nullptr) lane.gpu->check(request);

  PendingPtr pending = acquire();
  pending->channel = lane.channel;
  pending->staging = std::move(staging);
  pending->stream = request.stream;
  const std::string_view part_of = group::Composite::current();
  pending->name = part_of.empty() ? to_string(request.collective) : part_of;
  pending->collective = true;
  pending->timeout = timeout_of(options);
  pending->decision = std::move(decision);
  pending->form = {asynchronous, options.compress, pending->decision->algorithm, piece, part_of};
  pending->asked_algorithm = options.algorithm;
  pending->deterministic = options.deterministic;
  pending->in_counts.assign(request.in_counts.begin(), request.in_counts.end());
  pending->out_counts.assign(request.out_counts.begin(), request.out_counts.end());
  request.in_counts = pending->in_counts;
  request.out_counts = pending->out_counts;
  pending->call = group::fingerprint(parts_.token, request, pending->form);
  pending->request = std::move(request);
  announce(*pending);
  if (pending->decision->plan)
    launch(pending);
  else if (asynchronous)
    start_native(pending);
  return pending;
}

// Gives a call its number, and tells others of it.
void Group::State::announce(group::Pending& pending) {
  pending.sequence = ++sequence_;
  // Of all calls so far: what ranks have done differently shows at the next call that they make together, even where
  // the data of that one did not show it (a root that two ranks disagree about).
  calls_ = core::Hash().add(calls_).add(pending.sequence).add(pending.call).value();
  pending.fingerprint = pending.request.fingerprint = calls_;
  parts_.surroundings.history.add(pending);
  if (parts_.record != nullptr) parts_.record->begin(name(), pending.sequence, pending.name, pending.fingerprint);
  // Nobody waits for a call in a graph: it is compared when it becomes part of it, and no more when that runs.
  // No channel: a call over several GPUs, which blocks.
  const DeviceExtension* const gpu = pending.channel != nullptr ? gpu_of(pending.channel) : nullptr;
  if (host_.settings->compare_first || (gpu != nullptr && gpu->is_captured(pending.request.stream))) {
    group::Diagnosis diagnosis = diagnose(pending);
    WaitContext wait(Deadline::after(pending.timeout), parts_.surroundings.control.get(), parts_.record, &diagnosis);
    try {
      // Peers may need what is in flight here before they come to this call.
      diagnosis.compare_first(wait, [this] { progress_all(); });
    } catch (...) {
      fail_with_current(diagnosis, pending);
    }
  }
}

// Plans of several calls may begin in any order: this one begins when its input has been copied to where it runs.
void Group::State::launch(const PendingPtr& pending) {
  active_.push_back(pending);
  try {
    if (!pending->staging) return execute(*pending);
    pending->phase = group::Pending::Phase::fetching;
    pending->staging->fetch(pending->stream);
  } catch (...) {
    group::Diagnosis diagnosis = diagnose(*pending);
    fail_with_current(diagnosis, *pending);
  }
}

void Group::State::execute(group::Pending& pending) {
  const Request& request = pending.request;
  const group::Decision& decision = *pending.decision;
  exec::Operands operands{.input = request.in.data,
                          .output = request.out.data,
                          .dtype = decision.dtype,
                          .op = request.op,
                          .ranks = size(),
                          .widens = decision.widens,
                          .wide_input = decision.wide_input};
  if (request.op.kind() == Op::Kind::premul_sum && row_of(request.collective).reduces()) {
    const std::size_t bytes = request.in.count * (decision.wide_input ? sizeof(float) : size_of(request.in.dtype));
    if (bytes > pending.scaled_bytes) {
      pending.scaled.reset(new std::byte[bytes]);
      pending.scaled_bytes = bytes;
    }
    core::premultiply_to(request.op.scale(), request.in.dtype, request.in.data, decision.wide_input,
                         pending.scaled.get(), request.in.count);
    operands.input = pending.scaled.get();
  }
  pending.executor.start(*pending.channel, {.plan = decision.plan,
                                            .operands = operands,
                                            .slot = pending.fingerprint,
                                            .fault = fault_,
                                            .operation = pending.sequence,
                                            .trace = tracing_ ? &pending.executed : nullptr});
}

void Group::State::start_native(const PendingPtr& pending) {
  group::Diagnosis diagnosis = diagnose(*pending);
  WaitContext wait(pending->timeout, parts_.surroundings.control.get(), parts_.record, &diagnosis);
  // NCCL may wait for the peers before it starts, and these for what runs over the host.
  if (hosted_) wait.meanwhile([this] { progress_hosted(); });
  try {
    if (fault_ != nullptr) exec::FaultHook::pass(fault_, pending->sequence, fault_->step);
    active_.push_back(pending);
    // All ranks start these in the same order: the copy does not wait for its turn.
    fetch(*pending, wait);
    pending->ticket = pending->channel->start_native(pending->request, wait);
  } catch (...) {
    fail_with_current(diagnosis, *pending);
  }
}

// A backend's own collective blocks this rank, so that plans that were started before must end first: peers may wait
// for them.
void Group::State::run_native(const PendingPtr& call) {
  // Beside a call on GPUs, what runs over the host needs this rank's hand: peers may wait for that first.
  if (hosted_ && call->decision->starts && !active_.empty()) {
    start_native(call);
    return await(*call);
  }
  group::Pending& pending = *call;
  if (!pending.decision->starts) await_collectives();
  group::Diagnosis diagnosis = diagnose(pending);
  WaitContext wait(pending.timeout, parts_.surroundings.control.get(), parts_.record, &diagnosis);
  try {
    // It has no steps that could be counted from here: a fault strikes at its begin.
    if (fault_ != nullptr) exec::FaultHook::pass(fault_, pending.sequence, fault_->step);
    fetch(pending, wait);
    pending.channel->native(pending.request, wait);
    give_back(pending, wait);
    finish(pending);
    if (parts_.record != nullptr) parts_.record->end();
  } catch (...) {
    fail_with_current(diagnosis, pending);
  }
}

Group::State::PendingPtr Group::State::acquire() {
  for (const PendingPtr& pending : pool_) {
    if (pending.use_count() > 1 || !pending->ended) continue;
    pending->reset();
    return pending;
  }
  auto pending = std::make_shared<group::Pending>();
  pending->reset();
  if (pool_.size() < kPooled) pool_.push_back(pending);
  return pending;
}

void Group::State::fail(const Error& cause) {
  break_with(cause);
  throw *broken_;
}

void Group::State::fail_with_current(group::Diagnosis& diagnosis, const group::Pending& pending) {
  if (broken_) throw *broken_;  // by something else in flight, which has been explained
  try {
    throw;
  } catch (const Error& error) {
    fail(diagnosis.explain(error));
  } catch (const std::bad_alloc&) {
    fail(own_error(ErrorCode::resource, fmt::format("out of memory in {}", pending.name)));
  } catch (const std::length_error&) {
    fail(own_error(ErrorCode::resource, fmt::format("out of memory in {}", pending.name)));
  } catch (const std::exception& error) {
    fail(own_error(ErrorCode::internal,
                   fmt::format("{} threw '{}'; if that came from a reduction of yours, catch it there", pending.name,
                               error.what())));
  } catch (...) {
    fail(own_error(
        ErrorCode::internal,
        fmt::format("{} threw something that is no std::exception; if that came from a reduction of yours, catch "
                    "it there",
                    pending.name)));
  }
}

void Group::State::give_up(const Error& cause) {
  const Use use(*this);
  fail(cause);
}

// Publishes the cause before the connections close, so that a rank that notices the closing finds the cause.
void Group::State::break_with(const Error& cause) noexcept {
  if (broken_) return;
  broken_ = cause;
  try {
    broken_ = group::with_world_rank(cause, parts_.surroundings.peers);
    if (parts_.surroundings.scope) broken_ = group::publish_failure(*parts_.surroundings.scope, *broken_);
    if (broken_->group() != name())
      broken_ = Error(broken_->code(), broken_->message(), name(), broken_->rank(), broken_->world_rank());
  } catch (const std::exception&) {  // the cause itself is what counts
  }
  if (parts_.record != nullptr) {
    const int about = broken_->rank();
    const bool is_member = about >= 0 && about < size();
    parts_.record->fail(is_member ? parts_.surroundings.peers[static_cast<std::size_t>(about)].global_rank : -1);
  }
  abort_channels(*broken_);
  group::write_error_file(host_.error_file, *broken_);
  for (const PendingPtr& pending : active_) {
    pending->executor.abandon();
    pending->error = broken_;
    pending->ended = true;
  }
  active_.clear();
}

// ---- Trace

void Group::State::record_trace(bool on) {
  const Use use(*this);
  tracing_ = on;
  trace_.clear();
}

std::vector<TraceEntry> Group::State::trace() {
  const Use use(*this);
  return std::exchange(trace_, {});
}

}  // namespace col
