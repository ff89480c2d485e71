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

constexpr int count_of(Peers peers, const Shape& shape) noexcept {
  switch (peers) {
    case Peers::none:
      return 0;
    case Peers::root:
      return 1;
    case Peers::lower:
      return shape.rank;
    case Peers::others:
      break;
  }
  return shape.size - 1;
}

// The peers in the order in which a rank comes to them.
constexpr int peer_at(Peers peers, const Shape& shape, int index) noexcept {
  if (peers == Peers::root) return shape.root;
  if (peers == Peers::lower) return index;
  // Starts with the next rank, so that not all ranks read the same slot at once.
  const int peer = shape.rank + 1 + index;
  return peer < shape.size ? peer : peer - shape.size;
}

// One rank's way through the steps of a collective. It stops where a wait finds nothing yet, and goes on from there.
class Course {
 public:
  Course() = default;
  // The first of the `steps` steps has the number `first`. `reuse`: after how many steps, of this course and the next
  // ones, this rank writes again where it has put its input (Reuse).
  Course(const Pattern& pattern, const Shape& shape, std::uint64_t first, std::uint64_t steps,
         std::uint64_t reuse) noexcept
      : pattern_(pattern),
        shape_(shape),
        first_(first),
        steps_(steps),
        reuse_(reuse),
        fold_lag_(pattern.puts && steps > 1 ? 1 : 0),
        take_lag_(fold_lag_ + (pattern.takes_results && steps > 1 ? 1 : 0)),
        reads_(pattern.folds != Peers::none || pattern.takes != Peers::none) {}

  const Pattern& pattern() const noexcept { return pattern_; }
  // How many turns are behind it. Each puts one step, folds an earlier one, and takes one that is earlier still.
  std::uint64_t turn() const noexcept { return turn_; }

  // Goes as far as the waits allow. Returns whether all is done. Not to be called again after that, or after an
  // exception of the Port's.
  template <class Port>
  bool move_on(Port& port) {
    if (part_ == Part::begin) {
      // A rank that reads nothing in this collective does not delay others.
      if (!reads_) port.tell_done(first_ + steps_ - 1);
      enter(Part::put);
    }
    for (; turn_ < steps_ + take_lag_; ++turn_) {
      if (part_ == Part::put && !put(port)) return false;
      if (part_ == Part::fold && !fold(port)) return false;
      if (!take(port)) return false;
      enter(Part::put);
    }
    return true;
  }

 private:
  enum class Part : std::uint8_t { begin, put, fold, take };

  void enter(Part part) noexcept {
    part_ = part;
    next_ = 0;
  }

  template <class Port>
  bool put(Port& port) {
    if (pattern_.puts && turn_ < steps_) {
      const std::uint64_t step = first_ + turn_;
      if (step > reuse_ && !port.wait_done(step - reuse_)) return false;
      port.put(turn_, step);
      port.tell_ready(step);
    }
    enter(Part::fold);
    return true;
  }

  template <class Port>
  bool fold(Port& port) {
    if (pattern_.folds != Peers::none && turn_ >= fold_lag_ && turn_ < steps_ + fold_lag_) {
      const std::uint64_t step = first_ + turn_ - fold_lag_;
      for (; next_ < count_of(pattern_.folds, shape_); ++next_) {
        if (!port.wait_ready(peer_at(pattern_.folds, shape_, next_), step)) return false;
      }
      port.fold(turn_ - fold_lag_, step);
      if (pattern_.shows_result) port.tell_folded(step);
    }
    enter(Part::take);
    return true;
  }

  template <class Port>
  bool take(Port& port) {
    if (turn_ < take_lag_) return true;
    const std::uint64_t step = first_ + turn_ - take_lag_;
    for (; next_ < count_of(pattern_.takes, shape_); ++next_) {
      const int peer = peer_at(pattern_.takes, shape_, next_);
      if (!(pattern_.takes_results ? port.wait_folded(peer, step) : port.wait_ready(peer, step))) return false;
      port.take(turn_ - take_lag_, step, peer);
    }
    if (reads_) port.tell_done(step);
    return true;
  }

  Pattern pattern_;
  Shape shape_;
  std::uint64_t first_ = 0, steps_ = 0, reuse_ = 0;
  std::uint64_t fold_lag_ = 0, take_lag_ = 0;  // how many turns after its put a step is folded and taken
  bool reads_ = false;                         // whether this rank reads what others have put
  Part part_ = Part::begin;
  int next_ = 0;  // of the peers that this part waits for
  std::uint64_t turn_ = 0;
};

}  // namespace col::shm_backend
