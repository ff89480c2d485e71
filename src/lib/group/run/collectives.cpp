#include "group/run/collectives.hpp"

#include <bit>
#include <cstdint>
#include <exception>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "backend/capabilities.hpp"
#include "group/call/checks.hpp"
#include "group/call/composite.hpp"
#include "group/call/order.hpp"

namespace col::group {
namespace {

// Compares pairs of values without jumps: mostly they are the same.
class Differences {
 public:
  template <class Value>
  [[gnu::always_inline]] void of(Value a, Value b) {
    static_assert(std::has_unique_object_representations_v<Value>);
    if constexpr (sizeof(Value) == 1)
      bytes_ |= static_cast<std::uint8_t>(std::bit_cast<std::uint8_t>(a) ^ std::bit_cast<std::uint8_t>(b));
    else if constexpr (sizeof(Value) == 4)
      halves_ |= std::bit_cast<std::uint32_t>(a) ^ std::bit_cast<std::uint32_t>(b);
    else
      words_ |= std::bit_cast<std::uint64_t>(a) ^ std::bit_cast<std::uint64_t>(b);
  }
  [[gnu::always_inline]] void of(const ConstTensorView& a, const ConstTensorView& b) {
    of(a.data, b.data);
    of(a.count, b.count);
    of(a.dtype, b.dtype);
    of(a.device.type, b.device.type);
    of(a.device.index, b.device.index);
  }
  bool any() const { return (words_ | halves_ | bytes_) != 0; }

 private:
  std::uint64_t words_ = 0;
  std::uint32_t halves_ = 0;
  std::uint8_t bytes_ = 0;
};

// Mostly both are empty: that is seen without a call.
[[gnu::always_inline]] inline bool is_same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && (a.empty() || a == b);
}

// Returns true if a call would be the same as a known one: the same buffers, and the same in everything that decisions
// and checks depend on. Requires: the known one's operator is built in, and it has no lists of counts.
[[gnu::always_inline]] inline bool repeats(const Call& call, const Options& options, const Prepared& known) {
  Differences differences;
  differences.of(call.collective, known.request.collective);
  differences.of(call.in, known.request.in);
  differences.of(ConstTensorView(call.out), ConstTensorView(known.request.out));
  differences.of(call.in_counts.size() | call.out_counts.size(), std::size_t{0});
  differences.of(options.op.kind(), Op::Kind::builtin);
  differences.of(options.op.reduce_op(), known.request.op.reduce_op());
  differences.of(options.root, known.request.root);
  differences.of(options.stream.handle, known.request.stream.handle);
  differences.of(options.compress, known.form.compress);
  differences.of(asked_order(options), known.asked_order);
  differences.of(options.contributions, known.request.contributions);
  return !differences.any() && is_same(options.algorithm, known.asked_algorithm) &&
         is_same(known.form.part_of, Composite::current());
}

}  // namespace

Request request_of(const Call& call, const Options& options, Order order) {
  if (static_cast<std::size_t>(call.collective) >= kCollectives.size() || row_of(call.collective).is_message)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} is no collective; for messages there are send() and recv()", to_string(call.collective)));
  return {.collective = call.collective,
          .in = call.in,
          .out = call.out,
          .in_counts = call.in_counts,
          .out_counts = call.out_counts,
          .op = options.op,
          .root = options.root,
          .stream = options.stream,
          .order = order_of(call.collective, options, order),
          .contributions = options.contributions};
}

// A training step makes the calls of the last one again: they need no new checks, and no new decision.
void Collectives::run(const Call& call, const Options& options) {
  const Use use(access_, options);
  for (const PendingPtr& known : kept_beside(call)) {
    if (!known || known->started || !repeats(call, options, *known)) continue;
    core_.check_name(options.group);
    return starter_.run_again(known, options);
  }
  run_over(nullptr, request_of(call, options, core_.settings().order), options);
}

void Collectives::begin_again(Pending& known, const Options& options) {
  core_.check_name(options.group);
  starter_.begin_again(known, options);
}

void Collectives::run_on_host(Request request, const Options& options) {
  const Use use(access_, options);
  run_over(&lanes_.on_host(), std::move(request), options);
}

void Collectives::run_over(Lane* lane, Request request, const Options& options) {
  core_.check_name(options.group);
  if (lanes_.may_stage()) {
    check(request, core_.shape());
    lane = lane != nullptr ? lane : &lanes_.lane_for(request, wishes_of(options, false));
    if (const std::size_t elements = elements_of_piece(*lane, request, options); elements != 0)
      return run_in_pieces(*lane, request, options, elements);
  }
  // Once it has returned, no call that came before it uses a buffer, though its Work was dropped.
  if (request.collective == Collective::barrier) flight_.await_collectives();
  const PendingPtr pending = starter_.prepare(lane, std::move(request), options, false);
  if (!pending) return;
  // Asked now: finish() drops a user's operator, and copies.
  const bool may_come_again = pending->may_come_again() && !pending->decision->plan;
  starter_.begin(*pending, false);
  starter_.end(pending);
  if (may_come_again) keep(pending);
}

PendingPtr Collectives::start(const Call& call, const Options& options) {
  const Use use(access_);
  if (core_.is_collecting()) return collect(call, options);
  PendingPtr pending;
  // A Work, or the flight itself, may still hold the one that was made before.
  for (const PendingPtr& known : kept_beside(call))
    if (known && known->started && known.use_count() == 1 && repeats(call, options, *known)) pending = known;
  if (pending) {
    begin_again(*pending, options);
    starter_.launch(pending);
  } else {
    core_.check_name(options.group);
    pending = starter_.prepare(nullptr, request_of(call, options, core_.settings().order), options, true);
    if (!pending) return pending;
    starter_.begin(*pending, false);
    starter_.launch(pending);
    const bool is_native = !pending->decision->plan && lanes_.gpu_of(pending->channel) == nullptr;
    if (is_native && pending->may_come_again()) keep(pending);
  }
  flight_.progress_all(Flight::kGlance);
  return pending;
}

// In the place of the older one of two, which may be used for something else.
void Collectives::keep(const PendingPtr& pending) {
  auto& [last, older] = kept_beside(pending->request);
  std::swap(last, older);
  flight_.swap_pooled(pending, std::exchange(last, pending));
  try {
    starter_.prepare_native(*pending);
  } catch (const std::exception&) {  // no memory: this call has ended, or is in flight, and a later one does without
  }
}

PendingPtr Collectives::prepare(const Call& call, const Options& options) {
  const Use use(access_);
  core_.check_name(options.group);
  Request request = request_of(call, options, core_.settings().order);
  // The end of a call drops a user's function.
  if (lanes_.own().channel == nullptr || request.op.kind() == Op::Kind::user) {
    check(request, core_.shape());
    return nullptr;
  }
  const PendingPtr pending = starter_.prepare(nullptr, std::move(request), options, true);
  pending->end();
  if (pending->staging) return nullptr;
  starter_.prepare_native(*pending);
  return pending;
}

void Collectives::start_prepared(const PendingPtr& pending, const Options& options) {
  const Use use(access_);
  try {
    begin_again(*pending, options);
    pending->run.plan_of_counts.reset();
    starter_.launch(pending);
    flight_.progress_all(Flight::kGlance);
  } catch (...) {
    // One that broke the group before it was in flight: nobody else ends it, and a wait for it must not last.
    if (!pending->has_ended()) {
      pending->error = core_.broken();
      pending->end();
    }
    throw;
  }
}

// Where a call is kept that runs natively, by its buffers: that one, and another. Each of two that come in turns, and
// had one place, would be made anew every time.
template <class AnyCall>
Collectives::Kept& Collectives::kept_beside(const AnyCall& call) {
  const auto place_of = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); };
  const std::uint64_t mixed = (place_of(call.in.data) + 3 * place_of(call.out.data) +
                               ((call.in.count + call.out.count) << 5) + static_cast<std::uint64_t>(call.collective)) *
                              0x9e37'79b9'7f4a'7c15;
  return kept_[mixed >> (64 - kKeptBits)];
}

std::string Collectives::explain(Collective collective, std::size_t bytes, DType dtype, const Options& options) {
  access_.require_usable();
  core_.check_named(options.group);
  if (lanes_.own().channel == nullptr) return "self: a world of one moves no data";
  if (row_of(collective).is_message) return "a message has no algorithm";
  if (row_of(collective).rooted) check_peer(options.root, "root", core_.shape());
  const auto n = static_cast<std::size_t>(core_.size());
  const std::size_t count = size_of(dtype) == 0 ? 0 : bytes / size_of(dtype);
  const std::vector<std::size_t> counts(row_of(collective).has_counts() ? n : 0, count / n);
  // The longer side of a call that cuts a vector into blocks, and the shorter; no memory, as nothing runs.
  const ConstTensorView whole(nullptr, count / n * n, dtype), block(nullptr, count / n, dtype);
  Request request;
  request.collective = collective;
  request.op = options.op;
  request.root = options.root;
  request.order = order_of(collective, options, core_.settings().order);
  request.contributions = options.contributions;
  request.in = {nullptr, count, dtype};
  request.out = {nullptr, count, dtype};
  const CollectiveRow& row = row_of(collective);
  if (row.in == Extent::blocks) request.in_counts = counts;
  if (row.out == Extent::blocks) request.out_counts = counts;
  if (row.has_blocks()) {
    request.in = row.in == Extent::blocks ? whole : block;
    request.out.count = row.out == Extent::blocks ? whole.count : block.count;
  }
  const Lane& lane = lanes_.lane_for(request, wishes_of(options, false));
  const auto* const reasons = lane.can.reasons;
  const std::size_t elements = elements_of_piece(lane, request, options);
  if (elements == 0) return lane.dispatcher.explain(request, wishes_of(options, false), reasons);
  request.in.count = request.out.count = elements;
  return fmt::format("in pieces of {} elements: {}", elements,
                     lane.dispatcher.explain(request, wishes_of(options, false), reasons));
}

}  // namespace col::group
