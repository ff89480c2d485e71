// One rank starts another call than the others, and all wait in the next one, which is the same on all ranks.
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/mismatch.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

Case other(const Case& c) {
  Case odd = c;
  if (is_rooted(c.primitive) && mix(c.seed, 3) % 2 == 0)
    odd.root = (c.root + 1) % c.ranks;
  else if (c.primitive == Primitive::barrier)
    odd.primitive = Primitive::allreduce;
  else
    odd.count = c.count + 1;
  return odd;
}

const Mismatch& mismatch() {
  static const Mismatch kMismatch{
      .property = "mismatch_in_flight",
      .calls = calls_of(DType::float32, {Primitive::allreduce, Primitive::broadcast, Primitive::reduce,
                                         Primitive::allgather, Primitive::scatter, Primitive::barrier}),
      .other = &other,
      .in_flight = true};
  return kMismatch;
}

}  // namespace

const Property kFaultMismatchInFlight = mismatch_property<&mismatch>(
    "mismatch_in_flight", "one rank that starts another call is named on all ranks, which wait in the next one");

}  // namespace col::colcheck
