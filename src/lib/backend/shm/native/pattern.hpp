// Which rank reads which data of which rank in the steps of a collective. It decides which waits the protocol
// (steps.hpp) needs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace col::shm_backend {

// Consecutive elements of a vector.
struct ElementRange {
  std::size_t begin = 0, count = 0;
};

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

}  // namespace col::shm_backend
