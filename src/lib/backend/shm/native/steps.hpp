// The protocol of all collectives over shared memory: the order in which a rank waits, works and tells.
//
//   put   waits until nobody reads any more what is where it writes, writes the input there, tells `ready`
//   fold  waits until the inputs are there, reduces them in rank order, tells `folded` if others take the result
//   take  waits for inputs or results of others and copies them out
//   then tells `done`, which put waits for, kSlots or kHeaders steps later
//
// Steps overlap: while a rank folds one step, the inputs of the next one arrive. A rank without a part in a step, or in
// a whole collective, only tells `done`. There is no other synchronisation. Nothing relies on the waits of another
// collective. So any sequence of collectives is safe if one collective of each form is safe.
//
// Why it is right, for all ranks and all interleavings: the counters only grow, one rank writes each of them, and no
// rank decides anything by what it reads. So every execution has the same happens-before order, and a test computes it
// from exactly this code (tests/unit/shm/steps_test.cpp), with a Port that records. Any two accesses to one place in a
// slot, of which one writes, must be ordered, and every wait must end. lending.hpp says what holds when ranks fail and
// memory outside of slots is concerned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/shm/segment/layout.hpp"

namespace col::shm_backend {

// ---- Which rank reads which data of which rank: that decides which waits are needed

enum class Peers : std::uint8_t {
  none,
  root,    // only the root; for the other ranks
  others,  // all but this rank
  lower,   // all ranks below this one
};

// One rank's part in each step: it puts its input into its slot, folds inputs, and takes what others have put or
// folded.
struct Pattern {
  bool puts = false;
  Peers folds = Peers::none;   // the ranks whose inputs it folds, in addition to its own
  bool shows_result = false;   // others take the result of its fold from its slot
  Peers takes = Peers::none;   // the ranks that it takes from
  bool takes_results = false;  // it takes the results of folds, not inputs
};

// How inputs are cut among the ranks.
enum class Form : std::uint8_t {
  fold_all,        // every rank folds all of it: one wait
  fold_slices,     // every rank folds one slice of each step, and takes the others' results
  fold_slices_at,  // the same, but only the root takes them
  fold_at,         // only the root folds
  fold_own,        // every rank folds its own block
  fold_lower,      // every rank folds the inputs of the ranks below it, and perhaps its own
  from_root,       // the root puts, all others take
  to_root,         // the others put, the root takes
  between_all,     // every rank puts, and takes from all others
};

constexpr bool folds(Form form) noexcept {
  return form != Form::from_root && form != Form::to_root && form != Form::between_all;
}

constexpr Pattern pattern_of(Form form, int rank, int size, int root) noexcept {
  const bool is_root = rank == root;
  switch (form) {
    case Form::fold_all:
      return {.puts = true, .folds = Peers::others};
    case Form::fold_slices:
      return {
          .puts = true, .folds = Peers::others, .shows_result = true, .takes = Peers::others, .takes_results = true};
    case Form::fold_slices_at:
      return {.puts = true,
              .folds = Peers::others,
              .shows_result = !is_root,
              .takes = is_root ? Peers::others : Peers::none,
              .takes_results = true};
    case Form::fold_at:
      return {.puts = !is_root, .folds = is_root ? Peers::others : Peers::none};
    case Form::fold_own:
      return {.puts = true, .folds = Peers::others};
    case Form::fold_lower:
      return {.puts = rank + 1 < size, .folds = Peers::lower};
    case Form::from_root:
      return {.puts = is_root, .takes = is_root ? Peers::none : Peers::root};
    case Form::to_root:
      return {.puts = !is_root, .takes = is_root ? Peers::others : Peers::none};
    case Form::between_all:
      break;
  }
  return {.puts = true, .takes = Peers::others};
}

// ---- The protocol

// After how many steps a rank writes to the same place again. It need not wait for others before that. There are as
// many parts as headers, so that a part is used again as late.
class Reuse {
 public:
  constexpr Reuse(std::uint64_t slots, std::uint64_t headers) noexcept : slots_(slots), headers_(headers) {}

  // For a course that begins with step `first`, the next one. A part may be in a slot that was written as a whole.
  constexpr std::uint64_t of(Place place, std::uint64_t first, std::uint64_t steps) noexcept {
    if (place == Place::slot) last_slot_ = first + steps - 1;
    const bool is_late = place == Place::part && first - last_slot_ < headers_;
    return place == Place::slot || is_late ? slots_ : headers_;
  }

 private:
  std::uint64_t slots_, headers_;
  std::uint64_t last_slot_ = 0;  // the last step that may have used one as a whole
};

// What a Port does. `step` counts from 1 over all collectives of the group, and `index` from 0 within this one. The
// waits return whether what they wait for is there; what comes after one must not happen before it has returned true.
//
//   wait_done(step)                 whether all other ranks have told done(step) or a later one
//   put(index, step)                writes the input into this rank's slot
//   tell_ready(step)
//   wait_ready(peer, step), wait_folded(peer, step)
//   fold(index, step)               reads the inputs that it waited for; writes the result if others take it
//   tell_folded(step)
//   take(index, step, peer)
//   tell_done(step)

struct Shape {
  int rank = 0;
  int size = 1;
  int root = 0;
};

// The peers that a rank comes to, in their order.
struct Round {
  int first = 0, count = 0, size = 1;

  constexpr Round() = default;
  constexpr Round(Peers peers, const Shape& shape) noexcept : size(shape.size) {
    if (peers == Peers::root) {
      first = shape.root;
      count = 1;
    } else if (peers == Peers::lower) {
      count = shape.rank;
    } else if (peers == Peers::others) {
      first = shape.rank + 1;  // the next rank, so that not all ranks read the same slot at once
      count = shape.size - 1;
    }
  }
  constexpr int at(int index) const noexcept {
    const int peer = first + index;
    return peer < size ? peer : peer - size;
  }
};

// A rank's part in a collective, before its steps have numbers: the same for all calls of one kind.
struct Way {
  constexpr Way() = default;
  constexpr Way(const Pattern& of, const Shape& shape, std::uint64_t how_many) noexcept
      : pattern(of),
        reads(of.folds != Peers::none || of.takes != Peers::none),
        fold_lag(of.puts && how_many > 1 ? 1 : 0),
        take_lag(fold_lag + (of.takes_results && how_many > 1 ? 1 : 0)),
        folds(of.folds, shape),
        takes(of.takes, shape),
        steps(how_many) {}

  Pattern pattern = {};
  bool reads = false;                       // whether this rank reads what others have put
  std::uint8_t fold_lag = 0, take_lag = 0;  // how many turns after its put a step is folded and taken
  Round folds = {}, takes = {};
  std::uint64_t steps = 0;
};

// One rank's way through the steps of a collective. It stops where a wait finds nothing yet, and goes on from there.
class Course {
 public:
  Course() = default;
  // The first of the steps has the number `first`. `reuse`: after how many steps, of this course and the next ones,
  // this rank writes again where it has put its input (Reuse).
  Course(const Way& way, std::uint64_t first, std::uint64_t reuse) noexcept : way_(way), first_(first), reuse_(reuse) {}

  const Pattern& pattern() const noexcept { return way_.pattern; }
  // How many turns are behind it. Each puts one step, folds an earlier one, and takes one that is earlier still.
  std::uint64_t turn() const noexcept { return turn_; }

  // Goes as far as the waits allow. Returns whether all is done. Not to be called again after that, or after an
  // exception of the Port's.
  template <class Port>
  bool move_on(Port& port) {
    return has_one_step() ? move_on_by_one(port) : move_on_by_more(port);
  }
  // The two parts of it. Most courses have one step, and need not count.
  bool has_one_step() const noexcept { return way_.steps == 1; }
  template <class Port>
  [[gnu::always_inline]] bool move_on_by_one(Port& port) {
    return go<true>(port);
  }
  template <class Port>
  [[gnu::noinline]] bool move_on_by_more(Port& port) {
    return go<false>(port);
  }

 private:
  enum class Part : std::uint8_t { begin, put, fold, take };

  // `kOne`: there is one step, so there is one turn, and nothing lags.
  template <bool kOne, class Port>
  [[gnu::always_inline]] bool go(Port& port) {
    // A rank that reads nothing in this collective does not delay others.
    if (part_ == Part::begin && !way_.reads) port.tell_done(first_ + way_.steps - 1);
    Part part = part_;
    int next = next_;  // of the peers that this part waits for
    for (; kOne || turn_ < way_.steps + way_.take_lag; ++turn_) {
      if (part <= Part::put && !put<kOne>(port)) return stop(Part::put, 0);
      if (part <= Part::fold && !fold<kOne>(port, next)) return stop(Part::fold, next);
      if (part <= Part::fold) next = 0;
      if (!take<kOne>(port, next)) return stop(Part::take, next);
      if (kOne) return true;
      part = Part::put;
      next = 0;
    }
    return true;
  }

  bool stop(Part part, int next) noexcept {
    part_ = part;
    next_ = next;
    return false;
  }

  template <bool kOne>
  std::uint64_t turn_after(std::uint8_t lag) const noexcept {
    return kOne ? 0 : turn_ - lag;
  }

  template <bool kOne, class Port>
  [[gnu::always_inline]] bool put(Port& port) {
    if (!way_.pattern.puts || (!kOne && turn_ >= way_.steps)) return true;
    const std::uint64_t turn = turn_after<kOne>(0), step = first_ + turn;
    if (step > reuse_ && !port.wait_done(step - reuse_)) return false;
    port.put(turn, step);
    port.tell_ready(step);
    return true;
  }

  template <bool kOne, class Port>
  [[gnu::always_inline]] bool fold(Port& port, int& next) {
    if (way_.pattern.folds == Peers::none) return true;
    if (!kOne && (turn_ < way_.fold_lag || turn_ >= way_.steps + way_.fold_lag)) return true;
    const std::uint64_t turn = turn_after<kOne>(way_.fold_lag), step = first_ + turn;
    for (; next < way_.folds.count; ++next) {
      if (!port.wait_ready(way_.folds.at(next), step)) return false;
    }
    port.fold(turn, step);
    if (way_.pattern.shows_result) port.tell_folded(step);
    return true;
  }

  template <bool kOne, class Port>
  [[gnu::always_inline]] bool take(Port& port, int& next) {
    if (!kOne && turn_ < way_.take_lag) return true;
    const std::uint64_t turn = turn_after<kOne>(way_.take_lag), step = first_ + turn;
    for (; next < way_.takes.count; ++next) {
      const int peer = way_.takes.at(next);
      if (!(way_.pattern.takes_results ? port.wait_folded(peer, step) : port.wait_ready(peer, step))) return false;
      port.take(turn, step, peer);
    }
    if (way_.reads) port.tell_done(step);
    return true;
  }

  Way way_;
  std::uint64_t first_ = 0, reuse_ = 0;
  Part part_ = Part::begin;
  int next_ = 0;
  std::uint64_t turn_ = 0;
};

}  // namespace col::shm_backend
