// Who reads what of whom in the steps of a collective. It decides which waits the protocol (steps.hpp) needs.
#pragma once

#include <cstdint>

namespace col::shm_backend {

enum class Peers : std::uint8_t {
  none,
  root,    // the root, for the others
  others,  // all but this rank
  lower,   // all ranks below this one
};

// One rank's part in each step: it puts its input into its slot, folds inputs, takes what others have put or folded.
struct Pattern {
  bool puts = false;
  Peers folds = Peers::none;   // whose inputs it folds, besides its own
  bool shows_result = false;   // others take the result of its fold out of its slot
  Peers takes = Peers::none;   // from whom
  bool takes_results = false;  // the results of folds, not inputs
};

// How inputs are cut among the ranks.
enum class Form : std::uint8_t {
  fold_all,        // every rank folds all of it: one wait
  fold_slices,     // every rank folds one slice of each step, and takes the others' results
  fold_slices_at,  // the same, and the root alone takes them
  fold_at,         // the root alone folds
  fold_own,        // every rank folds the block that is meant for it
  fold_lower,      // every rank folds the inputs below it, and perhaps its own
  from_root,       // the root puts, all others take
  to_root,         // the others put, the root takes
  between_all,     // everybody puts, everybody takes from all others
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

}  // namespace col::shm_backend
