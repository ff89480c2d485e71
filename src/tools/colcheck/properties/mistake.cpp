#include "colcheck/properties/mistake.hpp"

namespace col::colcheck {
namespace {

bool has_input(Primitive primitive) {
  return primitive != Primitive::broadcast && primitive != Primitive::barrier;
}

bool has_both(Primitive primitive) {
  return has_input(primitive) && collective_of(primitive).has_value();
}

}  // namespace

const Algorithm* unordered_algorithm(Primitive primitive) {
  const auto collective = collective_of(primitive);
  if (!collective || !is_reduction(primitive)) return nullptr;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == *collective && algorithm.order == FoldOrder::any) return &algorithm;
  }
  return nullptr;
}

bool is_possible(Mistake mistake, Primitive primitive, int ranks) {
  const bool collective = collective_of(primitive).has_value();
  switch (mistake) {
    case Mistake::root_too_large:
    case Mistake::root_negative:
      return collective && is_rooted(primitive);
    case Mistake::null_input:
      return has_input(primitive);
    case Mistake::null_output:
      return primitive != Primitive::barrier && primitive != Primitive::recv_any;
    case Mistake::output_too_long:
    case Mistake::output_too_short:
    case Mistake::other_dtype:
      return has_both(primitive);
    case Mistake::uneven_blocks:
      return primitive == Primitive::alltoall && ranks > 1;
    case Mistake::too_few_counts:
    case Mistake::counts_of_other_sum:
    case Mistake::endless_count:
      return is_v_form(primitive);
    case Mistake::unknown_dtype:
      return primitive != Primitive::barrier;
    case Mistake::bits_of_floats:
    case Mistake::broken_scale_of_integers:
      return is_reduction(primitive);
    case Mistake::unknown_algorithm:
    case Mistake::unknown_parameter:
    case Mistake::malformed_algorithm:
      return collective && ranks > 1;  // a world of one runs no algorithm, and does not look
    case Mistake::order_not_kept:
      return ranks > 1 && unordered_algorithm(primitive) != nullptr;
    case Mistake::other_group:
      return true;
    case Mistake::peer_too_large:
    case Mistake::peer_negative:
    case Mistake::never_sent:
      return !collective && primitive != Primitive::recv_any;
    default:
      return primitive == Primitive::allgather || primitive == Primitive::gather || primitive == Primitive::scatter ||
             primitive == Primitive::reduce_scatter || primitive == Primitive::alltoall;
  }
}

bool only_root_can_know(Mistake mistake, Primitive primitive) {
  return is_rooted(primitive) && mistake != Mistake::root_too_large && mistake != Mistake::root_negative;
}

}  // namespace col::colcheck
