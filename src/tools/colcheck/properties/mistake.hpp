// Mistakes in the arguments of a call.
#pragma once

#include <cstdint>

#include <col/plan.hpp>

#include "colcheck/engine/primitive.hpp"

namespace col::colcheck {

enum class Mistake : std::uint64_t {
  root_too_large,
  root_negative,
  null_input,
  null_output,
  output_too_long,
  output_too_short,
  uneven_blocks,
  too_few_counts,
  counts_of_other_sum,
  endless_count,
  other_dtype,
  unknown_dtype,
  bits_of_floats,
  broken_scale_of_integers,
  unknown_algorithm,
  unknown_parameter,
  malformed_algorithm,
  order_not_kept,
  other_group,
  peer_too_large,
  peer_negative,
  never_sent,  // a blocking receive from oneself
  short_list,
};
inline constexpr std::uint64_t kMistakeCount = 23;

// Whether it can be made in a call of that primitive, in a group of this many ranks.
bool is_possible(Mistake mistake, Primitive primitive, int ranks);
// Whether ranks other than the root would find nothing wrong with the same call.
bool only_root_can_know(Mistake mistake, Primitive primitive);
// An algorithm that changes the order of the ranks; null if there is none.
const Algorithm* unordered_algorithm(Primitive primitive);

}  // namespace col::colcheck
