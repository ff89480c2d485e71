#include "backend/shm/native/collectives.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "backend/shm/native/meetings.hpp"
#include "core/clock/clock.hpp"
#include "core/log.hpp"

namespace col::shm_backend {
namespace {

constexpr std::string_view kName = "shared";

// A slot holds at least one element of this size from each rank. Longer ones go by a plan.
bool fits_slot(const Op& /*op*/, DType dtype) noexcept {
  return size_of(dtype) <= Area::kLargestElement;
}

constexpr auto kEntries = [] {
  std::array<NativeEntry, std::ranges::count(kCollectives, false, &CollectiveRow::is_message)> entries{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < kCollectives.size(); ++i) {
    if (!kCollectives[i].is_message)
      entries[next++] = {.collective = static_cast<Collective>(i),
                         .name = kName,
                         .rank_order = true,
                         .asynchronous = true,
                         .reduces = &fits_slot};
  }
  return entries;
}();

// Asks for a line that this processor writes soon. Another one has read it, so that the store would wait until that one
// has let go of it.
inline void want_line(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

// A root that folds alone holds up no more than this many.
constexpr int kFewRanks = 4;
// What goes from or to one rank is cut so that both sides work at the same time.
constexpr std::size_t kRootedParts = 8;

}  // namespace

// The real Port of steps.hpp.
template <class Moves>
class Collectives::Port {
 public:
  Port(Collectives& own, const Moves& moves, std::uint64_t fingerprint)
      : own_(own), area_(own.area_), moves_(moves), fingerprint_(fingerprint) {}

  bool wait_done(std::uint64_t step) {
    if (own_.done_seen_.least >= step) return true;
    std::uint64_t least = ~std::uint64_t{0};
    for (int peer = 0; peer < own_.size_; ++peer) {
      if (peer == own_.rank_) continue;
      std::uint64_t& seen = own_.done_seen_.by_rank[static_cast<std::size_t>(peer)];
      if (seen < step) {
        const auto& done = area_.done(peer).step;
        if (!is_there(done, step, peer)) return false;
        // acquire: the peer's reads of this rank's slot come before this rank's next writes to it.
        seen = done.load(std::memory_order_acquire);
      }
      least = std::min(least, seen);
    }
    own_.done_seen_.least = least;
    return true;
  }

  void put(std::uint64_t index, std::uint64_t step) {
    moves_.put(index, step);
    StepHeader& header = area_.header(own_.rank_, step);
    header.fingerprint = fingerprint_;
    header.done = area_.done(own_.rank_).step.load(std::memory_order_relaxed);
  }
  void tell_ready(std::uint64_t step) { tell(area_.header(own_.rank_, step).ready, step); }
  void tell_folded(std::uint64_t step) { tell(area_.header(own_.rank_, step).folded, step); }
  void tell_done(std::uint64_t step) { tell(area_.done(own_.rank_).step, step); }

  bool wait_ready(int peer, std::uint64_t step) {
    const StepHeader& header = area_.header(peer, step);
    if (!is_there(header.ready, step, peer)) return false;
    if (header.fingerprint != fingerprint_) throw OtherCall{peer};
    std::uint64_t& seen = own_.done_seen_.by_rank[static_cast<std::size_t>(peer)];
    seen = std::max(seen, header.done);
    return true;
  }
  bool wait_folded(int peer, std::uint64_t step) { return is_there(area_.header(peer, step).folded, step, peer); }

  void fold(std::uint64_t index, std::uint64_t step) { moves_.fold(index, step); }
  void take(std::uint64_t index, std::uint64_t step, int peer) { moves_.take(index, step, peer); }

 private:
  // Looks again for a moment, at full speed.
  bool is_there(const std::atomic<std::uint64_t>& counter, std::uint64_t value, int peer) {
    const Awaited awaited{&counter, value, peer};
    if (awaited.is_there()) return true;
    const int looks = own_.looks();
    // A rank that only takes pauses from the begin: its looks would fetch the line away between two stores of its peer.
    const bool exchanges = own_.course_.pattern().puts;
    if (exchanges && looks > 0 && looks_without_pause([&] { return awaited.is_there(); })) return true;
    for (int i = 0; i < looks; ++i) {
      pause_briefly();
      if (awaited.is_there()) return true;
    }
    own_.awaited_ = awaited;
    return false;
  }
  void tell(std::atomic<std::uint64_t>& word, std::uint64_t step) {
    // release: what this rank has written, or read, comes before. Not seq_cst, which would wait until the line is here:
    // a sleeper looks again after a nap (Waiter::sleep()).
    word.store(step, std::memory_order_release);
    own_.waiter_.wake_others();
  }

  Collectives& own_;
  const Area& area_;
  const Moves& moves_;
  const std::uint64_t fingerprint_;
};

Collectives::Collectives(const std::string& group, Segment& segment, SymmetricHeap& heap, int rank,
                         Attendant& attendant)
    : group_(group),
      segment_(segment),
      area_(segment.area()),
      tuning_(segment.tuning()),
      rank_(rank),
      size_(segment.size()),
      waiter_(segment, rank, attendant),
      conflict_(area_, rank, size_, attendant),
      own_slots_(group, segment, rank),
      done_seen_{.by_rank = std::vector<std::uint64_t>(static_cast<std::size_t>(segment.size()))},
      sources_(static_cast<std::size_t>(segment.size())),
      direct_(group, segment, heap, rank, attendant, sources_) {
  waiter_.set_patience(Patience::of(true, tuning_.looks));  // until all have told which processors they have
}

std::span<const NativeEntry> Collectives::entries() noexcept {
  return kEntries;
}

void Collectives::look_at_processors() {
  if (knows_processors_) return;
  const auto processors = segment_.processors();
  if (!processors) return;
  knows_processors_ = true;
  const bool is_crowded = size_ > *processors;
  Patience patience = Patience::of(is_crowded, tuning_.looks);
  patience.keeps_processor = segment_.are_apart();
  waiter_.set_patience(patience);
  if (rank_ != 0) return;
  core::log::info("group '{}': {} ranks on {} processors: {}", group_, size_, *processors,
                  is_crowded ? "a rank that waits lets others run at once" : "ranks wait at full speed for a moment");
}

Collectives::Choice Collectives::choose(const Request& request, std::size_t bytes) const {
  const CollectiveRow& row = row_of(request.collective);
  const std::size_t all = row.in == Extent::blocks ? bytes * static_cast<std::size_t>(size_) : bytes;
  const bool is_beyond = touched_by_all(row, bytes, size_) > tuning_.streamed;
  const std::size_t slot = is_beyond                   ? tuning_.wide_slot
                           : all <= tuning_.small_slot ? tuning_.small_slot
                                                       : tuning_.slot;
  // Where a rank that waits for a free slot would have to make way for the one that frees it, all parts find a slot.
  const std::size_t parts = tuning_.crowd > 1 ? kSlots : kRootedParts;
  const std::size_t part = is_beyond ? slot : slot / 2;
  // Rather few parts than short ones, but four: with two, hardly anything is copied at the same time.
  const std::size_t least = std::clamp<std::size_t>(bytes / kSlots, tuning_.least_part, 2 * tuning_.least_part);
  const std::size_t rooted = std::clamp(bytes / parts, std::min(least, part), part);
  const bool in_place = request.in.data == request.out.data;
  const core::Stores stores = is_beyond && !in_place ? core::Stores::streaming : core::Stores::cached;
  const bool is_small = bytes <= tuning_.fold_all;
  // Narrow floats that are multiplied are wider in a slot than the result, which goes there by way of the output: a
  // rank that is not the root has none.
  const bool is_wide = request.op.kind() == Op::Kind::premul_sum && size_of(request.in.dtype) < sizeof(float);
  if (row.is_message)
    throw Error(ErrorCode::internal, fmt::format("shm: {} was called, but is no collective of this backend's own; "
                                                 "please report this as a bug in col",
                                                 row.name));
  const auto by = [&](Form form, std::size_t chunk_bytes) { return Choice{form, chunk_bytes, stores, is_beyond}; };
  if (row.reduces()) {
    if (row.out == Extent::block) return by(Form::fold_own, slot);
    if (row.folds != Folds::all) return by(Form::fold_lower, slot);
    if (!row.rooted) return by(is_small ? Form::fold_all : Form::fold_slices, slot);
    if (is_small || is_wide || size_ <= kFewRanks) return by(Form::fold_at, rooted);
    return by(Form::fold_slices_at, slot);
  }
  if (!row.rooted) return by(Form::between_all, slot);
  if (row.out_on_root) return by(Form::to_root, rooted);
  return by(Form::from_root, row.in_on_root ? slot : rooted);
}

std::string Collectives::how(const Request& request) const {
  if (CmaCollective::suits(request, size_, tuning_)) {
    return tuning_.copies == KernelCopies::on
               ? "one copy by the kernel, where it works"
               : "one copy by the kernel, where it works and is faster than slots, which the ranks try";
  }
  const CollectiveRow& row = row_of(request.collective);
  if (!row.has_data()) return "no data moves";
  const std::size_t length = row.has_private_counts()
                                 ? std::max(request.in.count, request.out.count) / static_cast<std::size_t>(size_)
                                 : Movement::length_of(request, size_);
  const Choice choice = choose(request, length * size_of(request.out.dtype));
  return fmt::format("through slots, at most {} KiB a step", choice.chunk_bytes >> 10);
}

// ---- One call after the other, in the order of starting

template <class Body>
void Collectives::keeping_conflict(Body body) {
  try {
    body();
  } catch (const OtherCall& other) {
    conflict_.set(other);
  }
}

std::uint64_t Collectives::start(const Request& request) {
  queue_.push_back(request);
  return ++made_;
}

void Collectives::run(const Request& request, WaitContext& wait) {
  if (std::exchange(begun_, nullptr) == &request) return this->wait(made_, wait);
  if (head_ != nullptr || !queue_.empty()) return this->wait(start(request), wait);
  const std::uint64_t number = ++made_;  // mostly alone: no copy of the request
  begin(request);
  this->wait(number, wait);
}

void Collectives::wait(std::uint64_t number, WaitContext& wait) {
  try {
    if (conflict_) throw *conflict_;
    if (std::exchange(has_looked_, false) && !awaited_.is_there()) waiter_.wait_for(awaited_, wait);
    while (!move_on_to(number, &wait, true)) waiter_.wait_for(awaited_, wait);
  } catch (const OtherCall& other) {
    conflict_.tell(ended_ + 1, other.peer, wait);
  }
}

void Collectives::move_on() {
  if (conflict_) return conflict_.look(ended_ + 1);
  keeping_conflict([&] {
    if (!move_on_to(made_, nullptr, false)) waiter_.look(awaited_);
  });
}

// Returns whether that call has ended. `wait`: null where this rank must not wait. `looks`: whether it may for a
// moment.
bool Collectives::move_on_to(std::uint64_t number, WaitContext* wait, bool looks) {
  looks_ = looks;
  for (; ended_ < number; ++ended_) {
    if (head_ == nullptr) begin(queue_.front());
    if (!move_head_on(wait)) return false;
    if (direct_.is_timed()) [[unlikely]]
      direct_.end_trial();
    if (!queue_.empty() && head_ == &queue_.front()) queue_.pop_front();
    head_ = nullptr;
    if (course_.pattern().puts) want_next_slot();
  }
  return true;
}

// The next call is mostly like this one.
void Collectives::want_next_slot() const noexcept {
  want_line(&area_.header(rank_, next_step_));
  const std::size_t bytes = part_ == Part::slots ? route_->movement.slot_bytes() : 0;
  if (Area::place_of(bytes) != Place::part) return;
  const std::byte* const data = area_.slot_data(rank_, Area::index(next_step_)) + Area::part_at(next_step_);
  for (std::size_t at = 0; at < bytes; at += kAlignment) want_line(data + at);
}

// A rank that must not wait polls between the steps of a long call: its peers work on the same steps.
int Collectives::looks() const noexcept {
  return looks_ || course_.turn() > 0 ? waiter_.patience().looks : 0;
}

// ---- The parts of a call

std::optional<Collectives::Prepared> Collectives::prepare(const Request& request) {
  if (request.op.kind() != Op::Kind::builtin || row_of(request.collective).has_counts()) return std::nullopt;
  if (CmaCollective::suits(request, size_, tuning_)) return std::nullopt;
  const Prepared prepared{&request, Route(*this, request, Movement::length_of(request, size_)),
                          SymmetricCollective::suits(request, size_, tuning_)};
  if (prepared.route.pattern.puts) own_slots_.claim(prepared.route.movement.slot_bytes());
  return prepared;
}

bool Collectives::can_begin(const Prepared& prepared) const noexcept {
  return head_ == nullptr && queue_.empty() && !conflict_ && !(prepared.may_be_symmetric && direct_.has_memory());
}

std::uint64_t Collectives::start(const Prepared& prepared) {
  if (!can_begin(prepared)) return start(*prepared.request);
  begun_ = nullptr;
  ++made_;
  enter(*prepared.request);
  take(prepared.route);
  return made_;
}

bool Collectives::begin(const Prepared& prepared) noexcept {
  begun_ = nullptr;
  if (!can_begin(prepared)) return false;
  ++made_;
  begun_ = prepared.request;
  enter(*prepared.request);
  take(prepared.route);
  // A rank that only takes looks later: a look before its peer has written would fetch the line away from it.
  if (prepared.route.pattern.puts) keeping_conflict([&] { move_on_to(made_, nullptr, false); });
  return true;
}

bool Collectives::end(const Prepared& prepared) noexcept {
  if (begun_ != prepared.request || conflict_) return false;
  keeping_conflict([&] { move_on_to(made_, nullptr, true); });
  if (!is_idle()) {
    has_looked_ = !conflict_;
    return false;
  }
  begun_ = nullptr;
  return true;
}

void Collectives::enter(const Request& request) {
  head_ = &request;
  look_at_processors();
  area_.done(rank_).enter(ended_ + 1, request.fingerprint);
  waiter_.set_call(ended_ + 1, request.fingerprint);
}

void Collectives::begin(const Request& request) {
  enter(request);
  if (!direct_.begin(request)) return begin_with_slots();
  begin_meeting(Part::telling, sizeof(Presence));
}

// Returns whether the call has ended.
bool Collectives::move_head_on(WaitContext* wait) {
  for (;;) {
    switch (part_) {
      case Part::slots:
        if (!walk(route_->movement)) return false;
        if (route_->own_comes_last) route_->movement.move_own();
        return true;
      case Part::counting:
        if (!walk(Counting(area_, rank_, counts_))) return false;
        begin_moving(counts_.longest);
        break;
      case Part::telling:
        if (!walk(Telling<Presence>(area_, rank_, direct_.presences()))) return false;
        begin_after(direct_.share(*head_, wait));
        break;
      case Part::confirming_writes:
        if (!walk(Telling<Presence>(area_, rank_, {}))) return false;
        direct_.on_writes_confirmed();
        return true;
      case Part::confirming_reads:
        if (!walk(Telling<Presence>(area_, rank_, direct_.presences()))) return false;
        if (direct_.all_have_read()) return true;
        begin_with_slots();
        break;
    }
  }
}

template <class Moves>
bool Collectives::walk(const Moves& moves) {
  Port<Moves> port(*this, moves, head_->fingerprint);
  return course_.move_on(port);
}

void Collectives::begin_course(Part part, const Pattern& pattern, std::uint64_t steps, std::size_t bytes) {
  part_ = part;
  const std::uint64_t reuse = reuse_.of(Area::place_of(bytes), next_step_, steps);
  course_ = Course(pattern, {rank_, size_, head_->root}, next_step_, steps, reuse);
  next_step_ += steps;
}

void Collectives::begin_meeting(Part part, std::size_t bytes) {
  begin_course(part, pattern_of(Form::between_all, rank_, size_, head_->root), 1, bytes);
}

void Collectives::begin_after(DirectWay::Then then) {
  switch (then) {
    case DirectWay::Then::slots:
      return begin_with_slots();
    case DirectWay::Then::confirms_writes:
      return begin_meeting(Part::confirming_writes, sizeof(Presence));
    case DirectWay::Then::confirms_reads:
      return begin_meeting(Part::confirming_reads, sizeof(Presence));
  }
}

void Collectives::begin_with_slots() {
  if (!row_of(head_->collective).has_private_counts()) return begin_moving(Movement::length_of(*head_, size_));
  counts_.set(*head_, rank_, size_);
  const std::size_t bytes = counts_.sent.size() * sizeof(std::uint64_t);
  own_slots_.claim(bytes);
  begin_meeting(Part::counting, bytes);
}

void Collectives::begin_moving(std::size_t length) {
  const Request* moved = head_;
  if (row_of(moved->collective).counts == BlockCounts::pairs && moved->in.data == moved->out.data &&
      !std::equal(moved->in_counts.begin(), moved->in_counts.end(), moved->out_counts.begin())) {
    // In place, and arriving data is not in the place of sent data: blocks would be overwritten before they are sent.
    const auto* const input = static_cast<const std::byte*>(moved->in.data);
    apart_.input.assign(input, input + moved->in.bytes());
    apart_.request = *moved;
    apart_.request.in.data = apart_.input.data();
    moved = &apart_.request;
  }
  const Route& route = own_route_.emplace(*this, *moved, length);
  if (route.pattern.puts) own_slots_.claim(route.movement.slot_bytes());
  take(route);
}

Collectives::Route::Route(Collectives& own, const Request& request, std::size_t length, const Choice& choice)
    : movement(request, choice.form, own.area_, own.rank_, own.size_, length, choice.chunk_bytes, choice.stores,
               choice.is_beyond, own.own_slots_.writing, own.sources_),
      pattern(pattern_of(choice.form, own.rank_, own.size_, request.root)),
      own_comes_last(choice.form == Form::from_root) {  // the others need not wait until a root has copied its block
  // Its own input goes through its slot, too.
  pattern.puts = pattern.puts || (movement.is_scaled() && pattern.folds != Peers::none);
}

// Begins to move the data of the call. Requires: this rank has the slots.
void Collectives::take(const Route& route) {
  route_ = &route;
  if (!route.own_comes_last) route.movement.move_own();
  if (route.pattern.puts && route.movement.is_large())
    own_slots_.widen(route.movement.steps() * route.movement.slot_bytes(), route.movement.part_bytes());
  begin_course(Part::slots, route.pattern, route.movement.steps(), route.movement.slot_bytes());
}

void Collectives::give_up() noexcept {
  head_ = nullptr;
  begun_ = nullptr;
  has_looked_ = false;
  queue_.clear();
  ended_ = made_;
  direct_.take_back();
}

}  // namespace col::shm_backend
