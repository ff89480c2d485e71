// What the properties about mismatched calls share: one rank calls something else than the others, and every rank,
// itself included, must get `mismatch` that names it.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "colcheck/property.hpp"

namespace col::colcheck {

struct Mismatch {
  std::string_view property;
  // What is called, by all but the odd rank; only primitive, dtype, op and count are looked at.
  std::vector<Case> calls;
  // What the odd rank calls instead, in a case made of one of these. Decided by the case alone.
  Case (*other)(const Case& c);
  bool in_flight = false;  // Drill::in_flight
};

// Short calls of these with elements of that type, for Mismatch::calls.
std::vector<Case> calls_of(DType dtype, std::initializer_list<Primitive> primitives);

// Each call on each backend, by COL_CHECK=lazy and strict (Case::variant 0 and 1); in --quick, one of the two.
void add_mismatches(const Mismatch& mismatch, const Selection& selection, std::vector<Case>& cases);
Finding run_mismatch(const Mismatch& mismatch, const Case& c);

// The property that is made of a Mismatch.
template <const Mismatch& (*kMismatch)()>
constexpr Property mismatch_property(std::string_view name, std::string_view summary) {
  return {name,
          summary,
          Property::Kind::fault,
          [](const Selection& selection, std::vector<Case>& all) { add_mismatches(kMismatch(), selection, all); },
          [](Rank&, const Case& c) { return run_mismatch(kMismatch(), c); },
          OnGpus::buffers};
}

}  // namespace col::colcheck
