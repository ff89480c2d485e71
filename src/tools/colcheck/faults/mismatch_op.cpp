// One rank calls another primitive than the others, or the same by its i-form.
#include <algorithm>
#include <array>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/mismatch.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

struct Odd {
  Primitive call, instead;
};
constexpr std::array<Odd, 7> kOdd = {{{Primitive::allreduce, Primitive::reduce},
                                      {Primitive::broadcast, Primitive::scatter},
                                      {Primitive::allgather, Primitive::alltoall},
                                      {Primitive::gather, Primitive::allgather},
                                      {Primitive::alltoall, Primitive::reduce_scatter},
                                      {Primitive::exscan, Primitive::scan},
                                      {Primitive::reduce, Primitive::reduce}}};

Case other(const Case& c) {
  Case odd = c;
  const auto* const found = std::ranges::find(kOdd, c.primitive, &Odd::call);
  odd.primitive = found == kOdd.end() ? Primitive::allreduce : found->instead;
  if (found == kOdd.end()) odd.count = 1;
  if (odd.primitive == c.primitive) odd.asynchronous = true;
  if (c.primitive == Primitive::gather) odd.root = 0;
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
