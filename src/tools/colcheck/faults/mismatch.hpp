// Common parts of the properties about mismatched calls: one rank makes another call than the others, and every rank,
// this one included, must get `mismatch` that names it.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "colcheck/property.hpp"

namespace col::colcheck {

struct Mismatch {
  std::string_view property;
  // The calls of all ranks except the odd one. Only primitive, dtype, op and count are used.
  std::vector<Case> calls;
  // The odd rank's call in a case made from one of these. It depends only on the case.
  Case (*other)(const Case& c);
  bool in_flight = false;  // Drill::in_flight
};

// Short calls of these primitives with elements of that type, for Mismatch::calls.
std::vector<Case> calls_of(DType dtype, std::initializer_list<Primitive> primitives);

// Each call on each backend, with COL_CHECK=lazy and strict (Case::variant 0 and 1); with --quick, one of the two.
void add_mismatches(const Mismatch& mismatch, const Selection& selection, std::vector<Case>& cases);
Finding run_mismatch(const Mismatch& mismatch, const Case& c);

// The property for a Mismatch.
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
