// One rank calls with another root than the others.
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/mismatch.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// Any other one, itself included.
Case other(const Case& c) {
  Case odd = c;
  odd.root = (c.root + 1 + static_cast<int>(mix(c.seed, 3) % static_cast<std::uint64_t>(c.ranks - 1))) % c.ranks;
  return odd;
}

const Mismatch& mismatch() {
  static const Mismatch kMismatch{"mismatch_root",
                                  {{.primitive = Primitive::broadcast, .dtype = DType::float32, .count = 24},
                                   {.primitive = Primitive::reduce, .dtype = DType::float32, .count = 24},
                                   {.primitive = Primitive::gather, .dtype = DType::float32, .count = 24},
                                   {.primitive = Primitive::gatherv, .dtype = DType::float32, .count = 24},
                                   {.primitive = Primitive::scatter, .dtype = DType::float32, .count = 24},
                                   {.primitive = Primitive::scatterv, .dtype = DType::float32, .count = 24}},
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

const Property kFaultMismatchRoot{"mismatch_root", "one rank that calls with another root is named on all ranks",
                                  Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck
