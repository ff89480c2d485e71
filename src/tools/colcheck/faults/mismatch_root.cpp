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
  static const Mismatch kMismatch{
      "mismatch_root",
      calls_of(DType::float32, {Primitive::broadcast, Primitive::reduce, Primitive::gather, Primitive::gatherv,
                                Primitive::scatter, Primitive::scatterv}),
      &other};
  return kMismatch;
}

}  // namespace

const Property kFaultMismatchRoot =
    mismatch_property<&mismatch>("mismatch_root", "one rank that calls with another root is named on all ranks");

}  // namespace col::colcheck
