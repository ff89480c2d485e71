// One rank calls another primitive than the others, or the same by its i-form.
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/mismatch.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

Case other(const Case& c) {
  Case odd = c;
  switch (c.primitive) {
    case Primitive::allreduce:
      odd.primitive = Primitive::reduce;
      break;
    case Primitive::broadcast:
      odd.primitive = Primitive::scatter;
      break;
    case Primitive::allgather:
      odd.primitive = Primitive::alltoall;
      break;
    case Primitive::gather:
      odd.primitive = Primitive::allgather;
      odd.root = 0;
      break;
    case Primitive::alltoall:
      odd.primitive = Primitive::reduce_scatter;
      break;
    case Primitive::exscan:
      odd.primitive = Primitive::scan;
      break;
    case Primitive::reduce:
      odd.asynchronous = true;
      break;
    default:
      odd.primitive = Primitive::allreduce;
      odd.count = 1;
      break;
  }
  return odd;
}

const Mismatch& mismatch() {
  static const Mismatch kMismatch{
      "mismatch_op",
      calls_of(DType::float32, {Primitive::allreduce, Primitive::broadcast, Primitive::allgather, Primitive::gather,
                                Primitive::alltoall, Primitive::exscan, Primitive::reduce, Primitive::barrier}),
      &other};
  return kMismatch;
}

}  // namespace

const Property kFaultMismatchOp =
    mismatch_property<&mismatch>("mismatch_op", "one rank that calls another primitive is named on all ranks");

}  // namespace col::colcheck
