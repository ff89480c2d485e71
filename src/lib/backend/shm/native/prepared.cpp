// How a call goes through its steps, and all that one needs which comes again.
#include <algorithm>

#include "backend/shm/native/collectives.hpp"
#include "backend/shm/native/meetings.hpp"

namespace col::shm_backend {
namespace {

// Asks for a line that this processor writes soon. Another one has read it, so that the store would wait until that one
// has let go of it.
inline void want_line(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace

// The real Port of steps.hpp.
template <class Moves>
class Collectives::Port {
 public:
  Port(Collectives& own, const Moves& moves, std::uint64_t fingerprint)
      : own_(own), area_(own.area_), moves_(moves), fingerprint_(fingerprint) {}

  bool wait_done(std::uint64_t step) { return own_.done_seen_.least >= step || own_.have_all_done(step); }

  [[gnu::always_inline]] void put(std::uint64_t index, std::uint64_t step) {
    StepHeader& header = own_.header(step);
    moves_.put(index, step, header);
    header.fingerprint = fingerprint_;
    header.done = own_.done_.step.load(std::memory_order_relaxed);
  }
  void tell_ready(std::uint64_t step) { tell(own_.header(step).ready, step); }
  void tell_folded(std::uint64_t step) { tell(own_.header(step).folded, step); }
  void tell_done(std::uint64_t step) { tell(own_.done_.step, step); }

  [[gnu::always_inline]] bool wait_ready(int peer, std::uint64_t step) {
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
  [[gnu::always_inline]] bool is_there(const std::atomic<std::uint64_t>& counter, std::uint64_t value, int peer) {
    const Awaited awaited{&counter, value, peer};
    return awaited.is_there() || own_.look_on(awaited);
  }
  [[gnu::always_inline]] void tell(std::atomic<std::uint64_t>& word, std::uint64_t step) {
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

// Looks again for a moment, at full speed.
bool Collectives::look_on(const Awaited& awaited) noexcept {
  const int most = looks();
  // A rank that only takes pauses from the begin: its looks would fetch the line away between two stores of its peer.
  const bool exchanges = course_.pattern().puts;
  if (exchanges && most > 0 && looks_without_pause([&] { return awaited.is_there(); })) return true;
  for (int i = 0; i < most; ++i) {
    pause_briefly();
    if (awaited.is_there()) return true;
  }
  awaited_ = awaited;
  return false;
}

// True if all others have told done(step) or a later one.
bool Collectives::have_all_done(std::uint64_t step) noexcept {
  std::uint64_t least = ~std::uint64_t{0};
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    std::uint64_t& seen = done_seen_.by_rank[static_cast<std::size_t>(peer)];
    if (seen < step) {
      const Awaited awaited{&area_.done(peer).step, step, peer};
      if (!awaited.is_there() && !look_on(awaited)) return false;
      // acquire: the peer's reads of this rank's slot come before this rank's next writes to it.
      seen = awaited.counter->load(std::memory_order_acquire);
    }
    least = std::min(least, seen);
  }
  done_seen_.least = least;
  return true;
}

// ---- Calls that come again

std::optional<Collectives::Prepared> Collectives::prepare(const Request& request) {
  if (request.op.kind() != Op::Kind::builtin || row_of(request.collective).has_counts()) return std::nullopt;
  if (CmaCollective::suits(request, size_, tuning_)) return std::nullopt;
  const Prepared prepared{&request, Route(*this, request, Movement::length_of(request, size_)),
                          SymmetricCollective::suits(request, size_, tuning_)};
  if (prepared.route.way.pattern.puts) own_slots_.claim(prepared.route.movement.slot_bytes());
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
  if (prepared.route.way.pattern.puts) keeping_conflict([&] { move_prepared_on(false); });
  return true;
}

bool Collectives::end(const Prepared& prepared) noexcept {
  if (begun_ != prepared.request || conflict_) return false;
  if (head_ != nullptr) keeping_conflict([&] { move_prepared_on(true); });
  if (head_ != nullptr) {
    has_looked_ = !conflict_;
    return false;
  }
  begun_ = nullptr;
  return true;
}

// Requires: it is the head, and a prepared one.
void Collectives::move_prepared_on(bool looks) {
  looks_ = looks;
  if (!move_data_on()) return;
  ++ended_;
  end_head();
}

// ---- The steps of the one that is under way

void Collectives::enter(const Request& request) {
  head_ = &request;
  if (!knows_processors_) [[unlikely]]
    look_at_processors();
  const std::uint64_t number = ended_ + 1, fingerprint = request.fingerprint;
  done_.enter(number, fingerprint);
  waiter_.set_call(number, fingerprint);
}

Collectives::Route::Route(Collectives& of, const Request& request, std::size_t length, const Choice& choice)
    : movement(request, choice.form, of.area_, of.rank_, of.size_, length, choice.chunk_bytes, choice.stores,
               choice.is_beyond, of.own_slots_.writing, of.sources_),
      place(Area::place_of(movement.slot_bytes())),
      own(!movement.has_own() ? Own::none
          // The others need not wait until a root has copied its block.
          : choice.form == Form::from_root ? Own::last
                                           : Own::first) {
  Pattern pattern = pattern_of(choice.form, of.rank_, of.size_, request.root);
  // Its own input goes through its slot, too.
  pattern.puts = pattern.puts || (movement.is_scaled() && pattern.folds != Peers::none);
  way = {pattern, {of.rank_, of.size_, request.root}, movement.steps()};
}

// Begins to move the data of the call. Requires: this rank has the slots.
void Collectives::take(const Route& route) {
  route_ = &route;
  if (route.own == Route::Own::first) route.movement.move_own();
  if (route.way.pattern.puts && route.movement.is_large())
    own_slots_.widen(route.way.steps * route.movement.slot_bytes(), route.movement.part_bytes());
  begin_course(Part::slots, route.way, route.place);
}

void Collectives::begin_course(Part part, const Way& way, Place place) {
  part_ = part;
  const std::uint64_t reuse = reuse_.of(place, next_step_, way.steps);
  course_ = Course(way, next_step_, reuse);
  next_step_ += way.steps;
}

bool Collectives::move_data_on() {
  if (!walk(route_->movement)) return false;
  if (route_->own == Route::Own::last) route_->movement.move_own();
  return true;
}

template <class Moves>
bool Collectives::walk(const Moves& moves) {
  Port<Moves> port(*this, moves, head_->fingerprint);
  // Nobody sees the address of the first one, so that it stays in registers.
  if (course_.has_one_step()) return course_.move_on_by_one(port);
  Port<Moves> same = port;
  return course_.move_on_by_more(same);
}

template bool Collectives::walk(const Counting&);
template bool Collectives::walk(const Telling<Presence>&);

// The next call is mostly like this one.
void Collectives::end_head() noexcept {
  head_ = nullptr;
  if (!course_.pattern().puts) return;
  want_line(&header(next_step_));
  if (part_ == Part::slots && route_->place == Place::part) want_next_part();
}

void Collectives::want_next_part() const noexcept {
  const std::size_t bytes = route_->movement.slot_bytes();
  const std::byte* const data = area_.slot_data(rank_, Area::index(next_step_)) + Area::part_at(next_step_);
  for (std::size_t at = 0; at < bytes; at += kAlignment) want_line(data + at);
}

// A rank that must not wait polls between the steps of a long call: its peers work on the same steps.
int Collectives::looks() const noexcept {
  return looks_ || course_.turn() > 0 ? waiter_.patience().looks : 0;
}

}  // namespace col::shm_backend
