// The mistakes that the self-test plants, and the properties that must find each of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
};

// The name of the algorithm that has most of them.
inline constexpr std::string_view kPlantedAlgorithm = "planted";

struct PlantedBug {
  Bug bug;
  std::string_view name;     // "lost_nan"
  std::string_view summary;  // one line: what goes wrong
  // By name: each of these properties must fail in some case. Only their cases run over this bug, because it may damage
  // memory in ways that other properties do not expect. Empty for the control, over which all of them run.
  std::vector<std::string_view> caught_by;
  // The algorithms of the cases; the empty one is the default.
  std::vector<std::string_view> algorithms = {kPlantedAlgorithm};

  bool is_control() const { return bug == Bug::none; }
  std::string backend() const;  // "planted-lost_nan"
};

// The control first. The objects live as long as the process.
std::span<const PlantedBug> planted_bugs();
// Null if there is none of that name.
const PlantedBug* find_planted_bug(std::string_view name);

}  // namespace col::colcheck
