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
  static const Mismatch kMismatch{"mismatch_reduce_op",
                                  {{.primitive = Primitive::allreduce, .dtype = DType::int32, .count = 24},
                                   {.primitive = Primitive::reduce, .dtype = DType::int32, .count = 24},
                                   {.primitive = Primitive::reduce_scatter, .dtype = DType::int32, .count = 24},
                                   {.primitive = Primitive::reduce_scatterv, .dtype = DType::int32, .count = 24},
                                   {.primitive = Primitive::scan, .dtype = DType::int32, .count = 24},
                                   {.primitive = Primitive::exscan, .dtype = DType::int32, .count = 24}},
                                  &other};
  return kMismatch;
}

void cases(const Selection& selection, std::vector<Case>& all) {
  add_mismatches(mismatch(), selection, all);
}

Finding run(Rank& /*rank*/, const Case& c) {
  return run_mismatch(mismatch(), c);
}

}  // namespace

const Property kFaultMismatchReduceOp{"mismatch_reduce_op",
                                      "one rank that reduces by another operator is named on all ranks",
                                      Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck
