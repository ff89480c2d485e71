// One rank reduces by another operator than the others.
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/mismatch.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

Case other(const Case& c) {
  Case odd = c;
  const Operator operators[] = {Operator::product, Operator::min, Operator::avg, Operator::bxor, Operator::user};
  odd.op = operators[mix(c.seed, 3) % 5];
  return odd;
}

const Mismatch& mismatch() {
  static const Mismatch kMismatch{
      "mismatch_reduce_op",
      calls_of(DType::int32, {Primitive::allreduce, Primitive::reduce, Primitive::reduce_scatter,
                              Primitive::reduce_scatterv, Primitive::scan, Primitive::exscan}),
      &other};
  return kMismatch;
}

}  // namespace

const Property kFaultMismatchReduceOp = mismatch_property<&mismatch>(
    "mismatch_reduce_op", "one rank that reduces by another operator is named on all ranks");

}  // namespace col::colcheck
