// One rank calls with another dtype than the others.
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/mismatch.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// Of the same size, a larger, a smaller one.
Case other(const Case& c) {
  Case odd = c;
  const DType types[] = {DType::float32, DType::float64, DType::int8, DType::float16};
  odd.dtype = types[mix(c.seed, 3) % 4];
  return odd;
}

const Mismatch& mismatch() {
  static const Mismatch kMismatch{
      "mismatch_dtype",
      calls_of(DType::int32, {Primitive::allreduce, Primitive::broadcast, Primitive::reduce, Primitive::allgather,
                              Primitive::reduce_scatterv, Primitive::scatter, Primitive::alltoall, Primitive::scan}),
      &other};
  return kMismatch;
}

}  // namespace

const Property kFaultMismatchDType =
    mismatch_property<&mismatch>("mismatch_dtype", "one rank that calls with another dtype is named on all ranks");

}  // namespace col::colcheck
