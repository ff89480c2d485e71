// The backends of the self-test: one for each mistake that it plants, and one without; and the properties that must
// find each of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace col::colcheck {

enum class Bug : std::uint8_t {
  none,  // no mistake: the control
  wrong_remainder_block,
  dropped_last_element,
  uneven_blocks_cut,
  wrong_root,
  output_cleared_first,
  assumes_alignment,
  stale_scratch,
  unsynchronised_reuse,
  operands_swapped,
  arrival_order,
  one_ulp,
  rounds_every_hop,
  sums_in_float32,
  lost_nan,
  denormals_flushed,
  saturates,
  avg_floor,
  signed_compare,
  writes_past_end,
  reads_past_end,
  input_overwritten,
  non_root_output_touched,
  barrier_does_nothing,
  swaps_equal_tags,
  leaks_descriptors,
  tree_over_ranks,
};

// The name of the algorithm that has most of them.
inline constexpr std::string_view kPlantedAlgorithm = "planted";

struct PlantedBug {
  Bug bug;
  std::string_view name;     // "lost_nan"
  std::string_view summary;  // one line: what goes wrong
  // Names with commas between them: each of these properties must fail in some case. Only their cases run over this
  // bug, because it may damage memory in ways that other properties do not expect. Empty for the control, over which
  // all of them run.
  std::string_view caught_by;
  // The algorithms of the cases, in the same form; the empty one is the default.
  std::string_view algorithms = kPlantedAlgorithm;

  bool is_control() const { return bug == Bug::none; }
  std::string backend() const;  // "planted-lost_nan"
};

// The control first.
std::span<const PlantedBug> planted_bugs();

// Registers all of them, as "planted-BUG". Their messages go over shared memory, or over Gloo if that cannot be used.
// If neither can be used, their unavailable_reason() says so. Every rank has to call it before it joins a group over
// one of them. Does nothing if they are already registered. Thread safe.
void register_planted_backends();

}  // namespace col::colcheck
