// The protocol of all collectives over shared memory: the order in which a rank waits, works and tells.
//
//   put   waits until nobody reads the slot any more, writes the input into it, tells `ready`
//   fold  waits until the inputs are there, reduces them in rank order, tells `folded` if others take the result
//   take  waits for inputs or results of others and copies them out
//   then tells `done`, which put waits for, kSlots steps later
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

inline constexpr std::uint64_t kReuse = 4;  // kSlots: a slot is used again after this many steps

// What a Port does. `step` counts from 1 over all collectives of the group, and `index` from 0 within this one.
//
//   wait_done(step)                 waits until all other ranks have told done(step) or a later one
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

template <class Visit>
void for_peers(Peers peers, const Shape& shape, Visit visit) {
  switch (peers) {
    case Peers::none:
      return;
    case Peers::root:
      return visit(shape.root);
    case Peers::lower:
      for (int peer = 0; peer < shape.rank; ++peer) visit(peer);
      return;
    case Peers::others:
      // Starts with the next rank, so that not all ranks read the same slot at once.
      for (int peer = shape.rank + 1; peer < shape.size; ++peer) visit(peer);
      for (int peer = 0; peer < shape.rank; ++peer) visit(peer);
      return;
  }
}

// Goes through `steps` steps. The first one has the number `first`.
template <class Port>
void run_steps(Port& port, const Pattern& pattern, const Shape& shape, std::uint64_t first, std::uint64_t steps) {
  const std::uint64_t fold_lag = pattern.puts && steps > 1 ? 1 : 0;
  const std::uint64_t take_lag = fold_lag + (pattern.takes_results && steps > 1 ? 1 : 0);
  const bool reads = pattern.folds != Peers::none || pattern.takes != Peers::none;
  // A rank that reads nothing in this collective does not delay others.
  if (!reads) port.tell_done(first + steps - 1);
  for (std::uint64_t turn = 0; turn < steps + take_lag; ++turn) {
    if (pattern.puts && turn < steps) {
      const std::uint64_t step = first + turn;
      if (step > kReuse) port.wait_done(step - kReuse);
      port.put(turn, step);
      port.tell_ready(step);
    }
    if (pattern.folds != Peers::none && turn >= fold_lag && turn < steps + fold_lag) {
      const std::uint64_t step = first + turn - fold_lag;
      for_peers(pattern.folds, shape, [&](int peer) { port.wait_ready(peer, step); });
      port.fold(turn - fold_lag, step);
      if (pattern.shows_result) port.tell_folded(step);
    }
    if (turn < take_lag) continue;
    const std::uint64_t step = first + turn - take_lag;
    for_peers(pattern.takes, shape, [&](int peer) {
      if (pattern.takes_results)
        port.wait_folded(peer, step);
      else
        port.wait_ready(peer, step);
      port.take(turn - take_lag, step, peer);
    });
    if (reads) port.tell_done(step);
  }
}

}  // namespace col::shm_backend
