#include "backend/shm/native/collectives.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "backend/shm/native/lending.hpp"
#include "backend/shm/native/meetings.hpp"
#include "backend/shm/segment/memory_room.hpp"
#include "core/clock/clock.hpp"
#include "core/log.hpp"

namespace col::shm_backend {
namespace {

constexpr std::string_view kName = "shared";
constexpr Duration kTimeToLetGo = std::chrono::milliseconds(200);
constexpr Duration kTimeForReason = std::chrono::seconds(1);

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
    if (own_.least_seen_done_ >= step) return true;
    std::uint64_t least = ~std::uint64_t{0};
    for (int peer = 0; peer < own_.size_; ++peer) {
      if (peer == own_.rank_) continue;
      std::uint64_t& seen = own_.seen_done_[static_cast<std::size_t>(peer)];
      if (seen < step) {
        const auto& done = area_.done(peer).step;
        if (!is_there(done, step, peer)) return false;
        // acquire: the peer's reads of this rank's slot come before this rank's next writes to it.
        seen = done.load(std::memory_order_acquire);
      }
      least = std::min(least, seen);
    }
    own_.least_seen_done_ = least;
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
    std::uint64_t& seen = own_.seen_done_[static_cast<std::size_t>(peer)];
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

// The real Port of work_on_others().
template <class Work>
class Collectives::Loan {
 public:
  // `wait`: null where this rank must not wait.
  Loan(Collectives& own, const Work& work, WaitContext* wait)
      : own_(own), work_(work), rest_([this, wait] {
          own_.attendant_.attend();
          if (wait != nullptr) wait->check();
        }) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  // seq_cst: either look() sees the end of the group, or the rank that has ended it sees this (give_up()).
  void begin_work() { works().store(1, std::memory_order_seq_cst); }
  void end_work() noexcept { works().store(0, std::memory_order_release); }  // pairs with give_up()
  void look() {
    rest_();
    if (own_.segment_.ending()) throw_end();
  }
  void work() { work_(rest_); }
  void look_after_work() {
    if (own_.segment_.ending_after_reads()) throw_end();
  }

 private:
  std::atomic<std::uint32_t>& works() const { return own_.segment_.place(own_.rank_).works; }
  // The reason is being written, unless the writer was killed.
  [[noreturn]] void throw_end() {
    for (const Deadline limit = Deadline::after(kTimeForReason); !limit.expired(); core::yield()) rest_();
    throw Error(ErrorCode::aborted, "the group has ended, and the rank that ended it was killed before it said why");
  }

  Collectives& own_;
  const Work& work_;
  const SymmetricCollective::Rest rest_;
};

Collectives::Collectives(const std::string& group, Segment& segment, SymmetricHeap& heap, int rank,
                         Attendant& attendant)
    : group_(group),
      segment_(segment),
      heap_(heap),
      area_(segment.area()),
      tuning_(segment.tuning()),
      rank_(rank),
      size_(segment.size()),
      attendant_(attendant),
      waiter_(segment, rank, attendant),
      claimed_slots_(segment.first_slots()),
      seen_done_(static_cast<std::size_t>(segment.size())),
      sources_(static_cast<std::size_t>(segment.size())),
      cma_(group, rank, segment.token()),
      kernel_trials_(segment.size(), tuning_.before_trials),
      presences_(static_cast<std::size_t>(segment.size())) {
  writing_.tries = tuning_.tries != 0;
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
  crowded_ = size_ > *processors;
  Patience patience = Patience::of(crowded_, tuning_.looks);
  patience.keeps_processor = segment_.are_apart();
  waiter_.set_patience(patience);
  if (rank_ != 0) return;
  core::log::info("group '{}': {} ranks on {} processors: {}", group_, size_, *processors,
                  crowded_ ? "a rank that waits lets others run at once" : "ranks wait at full speed for a moment");
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

// Those who compare the calls in words can say more about a mismatch: they get time for it.
template <class Body>
void Collectives::keeping_conflict(Body body) {
  try {
    body();
  } catch (const OtherCall& other) {
    conflict_ = other;
    words_ = Deadline::after(kVotingTime);
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
    throw_mismatch(other.peer, wait);
  }
}

void Collectives::move_on() {
  if (conflict_) {
    if (!conflict_of_all_ && all_have_called()) {
      conflict_of_all_ = true;
      words_ = Deadline::after(kTimeForWords);
    }
    if (words_.expired()) throw mismatch_with(conflict_->peer);
    return;
  }
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
    if (turn_.is_timed) [[unlikely]]
      end_trial();
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
  if (prepared.route.pattern.puts) claim_slots(prepared.route.movement.slot_bytes());
  return prepared;
}

bool Collectives::can_begin(const Prepared& prepared) const noexcept {
  return head_ == nullptr && queue_.empty() && !conflict_ && !(prepared.may_be_symmetric && heap_.any());
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
  may_be_symmetric_ = heap_.any() && SymmetricCollective::suits(request, size_, tuning_);
  may_use_cma_ = cma_.may_work() && CmaCollective::suits(request, size_, tuning_);
  turn_ = {};
  if (may_use_cma_ && cma_.works() && tuning_.copies != KernelCopies::on) {
    turn_ = kernel_trials_.next(*CmaCollective::call_of(request, size_));
    may_use_cma_ = turn_.meets();
  }
  if (!may_be_symmetric_ && !may_use_cma_) return begin_with_slots();

  Presence& own = presences_[static_cast<std::size_t>(rank_)];
  own = {};
  if (may_be_symmetric_) own.whereabouts = SymmetricCollective::whereabouts(request, heap_);
  own.addresses = CmaCollective::addresses(request, rank_);
  own.identity = cma_.identity();
  if (turn_.decides) own.times = kernel_trials_.told();
  others_may_write_ = may_be_symmetric_;
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
        if (!walk(Counting(area_, rank_, sent_, expected_, longest_))) return false;
        begin_moving(longest_);
        break;
      case Part::telling:
        if (!walk(Telling<Presence>(area_, rank_, presences_))) return false;
        do_share(wait);
        break;
      case Part::confirming_writes:
        if (!walk(Telling<Presence>(area_, rank_, {}))) return false;
        others_may_write_ = false;
        return true;
      case Part::confirming_reads:
        if (!walk(Telling<Presence>(area_, rank_, presences_))) return false;
        if (cma_.all_have_read(presences_)) return true;
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

// All ranks have told where their buffers are: each does its share, if all can reach what they need. Otherwise the call
// goes through the slots. All ranks decide alike.
void Collectives::do_share(WaitContext* wait) {
  if (may_be_symmetric_) {
    SymmetricCollective symmetric(*head_, heap_, tuning_, rank_, size_, presences_, sources_);
    if (symmetric.possible()) {
      turn_ = {};
      borrow([&](const auto& rest) { symmetric.run(rest); }, wait);
      return begin_meeting(Part::confirming_writes, sizeof(Presence));
    }
  }
  others_may_write_ = false;  // all know that it is not possible
  if (!may_use_cma_) return begin_with_slots();
  if (!cma_.works()) {
    cma_.learn(presences_);
    return begin_with_slots();
  }
  if (turn_.decides) turn_.by_kernel = kernel_trials_.decide(presences_);
  if (turn_.is_timed) share_began_ = share_ended_ = core::Clock::now();
  const CmaCollective by_cma(*head_, rank_, size_, presences_);
  if (!turn_.by_kernel || !by_cma.possible()) return begin_with_slots();
  bool all_read = false;
  borrow([&](const auto& rest) { all_read = by_cma.run(cma_, rest); }, wait);
  if (turn_.is_timed) share_ended_ = core::Clock::now();
  presences_[static_cast<std::size_t>(rank_)].identity.reaches_all = all_read ? 1 : 0;
  begin_meeting(Part::confirming_reads, sizeof(Presence));
}

// Once the call has ended.
void Collectives::end_trial() noexcept {
  const auto now = core::Clock::now();
  const auto since = [&](auto begin) {
    const auto time = std::chrono::nanoseconds(now - begin).count();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(time, 0, WayTimes::kUnknown / 4));
  };
  if (turn_.by_kernel)
    kernel_trials_.took({.kernel = since(share_began_), .meeting = since(share_ended_)});
  else
    kernel_trials_.took({.slots = since(share_began_)});
  turn_ = {};
}

// A rank's share of a call that works on others' memory.
template <class Work>
void Collectives::borrow(const Work& work, WaitContext* wait) {
  Loan<Work> loan(*this, work, wait);
  work_on_others(loan);
}

void Collectives::begin_with_slots() {
  if (!row_of(head_->collective).has_private_counts()) return begin_moving(Movement::length_of(*head_, size_));
  set_counts();
  begin_meeting(Part::counting, sent_.size() * sizeof(std::uint64_t));
}

// Every rank tells all others how much it sends to each of them: then all know the longest block, and each that it gets
// what it expects.
void Collectives::set_counts() {
  const Request& request = *head_;
  const auto root = static_cast<std::size_t>(request.root);
  sent_.assign(static_cast<std::size_t>(size_), 0);
  expected_.assign(static_cast<std::size_t>(size_), 0);
  const auto set = [](std::vector<std::uint64_t>& row, std::span<const std::size_t> counts) {
    std::copy(counts.begin(), counts.end(), row.begin());
  };
  const CollectiveRow& row = row_of(request.collective);
  const bool is_root = rank_ == request.root;
  if (row.in == Extent::block)
    sent_[root] = request.in.count;
  else if (row.has_input(is_root))
    set(sent_, request.in_counts);
  if (row.out == Extent::block)
    expected_[root] = request.out.count;
  else if (row.has_output(is_root))
    set(expected_, request.out_counts);
  longest_ = *std::max_element(sent_.begin(), sent_.end());
  claim_slots(sent_.size() * sizeof(std::uint64_t));
}

void Collectives::begin_moving(std::size_t length) {
  const Request* moved = head_;
  if (row_of(moved->collective).counts == BlockCounts::pairs && moved->in.data == moved->out.data &&
      !std::equal(moved->in_counts.begin(), moved->in_counts.end(), moved->out_counts.begin())) {
    // In place, and arriving data is not in the place of sent data: blocks would be overwritten before they are sent.
    const auto* const input = static_cast<const std::byte*>(moved->in.data);
    copied_.assign(input, input + moved->in.bytes());
    with_copy_ = *moved;
    with_copy_.in.data = copied_.data();
    moved = &with_copy_;
  }
  const Route& route = own_route_.emplace(*this, *moved, length);
  if (route.pattern.puts) claim_slots(route.movement.slot_bytes());
  take(route);
}

Collectives::Route::Route(Collectives& own, const Request& request, std::size_t length, const Choice& choice)
    : movement(request, choice.form, own.area_, own.rank_, own.size_, length, choice.chunk_bytes, choice.stores,
               choice.is_beyond, own.writing_, own.sources_),
      pattern(pattern_of(choice.form, own.rank_, own.size_, request.root)),
      own_comes_last(choice.form == Form::from_root) {  // the others need not wait until a root has copied its block
  // Its own input goes through its slot, too.
  pattern.puts = pattern.puts || (movement.is_scaled() && pattern.folds != Peers::none);
}

// Begins to move the data of the call. Requires: this rank has the slots.
void Collectives::take(const Route& route) {
  route_ = &route;
  if (!route.own_comes_last) route.movement.move_own();
  if (route.pattern.puts && route.movement.is_large()) widen_slots();
  begin_course(Part::slots, route.pattern, route.movement.steps(), route.movement.slot_bytes());
}

// Takes the memory for going onward, once calls have wanted it for some time. Not where ranks share a processor, which
// then has all slots in its cache. Calls work without it.
void Collectives::widen_slots() noexcept {
  const std::size_t wide = std::bit_floor(tuning_.wide_slot);
  if (before_wide_ == 0 || tuning_.crowd > 1 || route_->movement.part_bytes() >= wide) return;
  before_wide_ -= std::min(before_wide_, route_->movement.steps() * route_->movement.slot_bytes());
  if (before_wide_ != 0) return;
  try {
    // All ranks take as much, and others may need memory more.
    if (const auto lack = lack_of_memory(2 * static_cast<std::size_t>(size_) * kSlots * wide))
      throw Error(ErrorCode::resource, *lack);
    claim_slots(wide);
    writing_.reach = wide;
  } catch (const std::exception& error) {
    core::log::info("group '{}': calls that the caches hold use {} KiB of each slot, and not {}: {}", group_,
                    tuning_.slot >> 10, wide >> 10, error.what());
  }
}

void Collectives::give_up() noexcept {
  head_ = nullptr;
  begun_ = nullptr;
  has_looked_ = false;
  queue_.clear();
  ended_ = made_;
  if (!std::exchange(others_may_write_, false)) return;
  if (!segment_.ending()) return heap_.detach();  // no memory for the words
  struct Lender {
    const Segment& segment;
    SymmetricHeap& heap;
    const Deadline deadline = Deadline::after(kTimeToLetGo);

    // A rank that comes late sees that the group has ended. A rank that works sees it soon, unless it has been stopped.
    bool wait_idle(int peer) const {
      while (segment.place(peer).works.load(std::memory_order_seq_cst) != 0) {  // see Loan::begin_work()
        if (deadline.expired()) return false;
        core::yield();
      }
      return true;
    }
    void detach() const { heap.detach(); }
  } lender{segment_, heap_};
  take_back(lender, rank_, size_);
}

}  // namespace col::shm_backend
