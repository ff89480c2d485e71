// One rank calls with another count than the others.
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/mismatch.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// One more, one less, twice as many (as 1 x 2560 against 2 x 2560), far more than fits any buffer, none.
Case other(const Case& c) {
  Case odd = c;
  const std::size_t counts[] = {c.count + 1, c.count - 1, 2 * c.count, 100'000, 0};
  odd.count = counts[mix(c.seed, 3) % 5];
  return odd;
}

const Mismatch& mismatch() {
  static const Mismatch kMismatch{
      "mismatch_count",
      calls_of(DType::float32, {Primitive::allreduce, Primitive::broadcast, Primitive::reduce, Primitive::allgather,
                                Primitive::allgatherv, Primitive::reduce_scatter, Primitive::gather, Primitive::scatter,
                                Primitive::alltoall, Primitive::scan}),
      &other};
  return kMismatch;
}

}  // namespace

const Property kFaultMismatchCount =
    mismatch_property<&mismatch>("mismatch_count", "one rank that calls with another count is named on all ranks");

}  // namespace col::colcheck
