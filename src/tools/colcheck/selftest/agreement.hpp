// The arithmetic of common/ beside the definitions of what calls give. They share nothing, and must agree: so an error
// in either of them shows, which is tried with planted ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <col/types.hpp>

#include "colcheck/selftest/planted_backend.hpp"

namespace col::colcheck {

// An error that is planted for as long as the two are compared.
struct Mistake {
  enum class In : std::uint8_t {
    neither,
    arithmetic,  // elements come from another rank than they should; or, in a reduction of elements, `bug`
    definition   // the elements of each rank are in the wrong order; or the last contribution is left out
  };
  In in = In::neither;
  Bug bug = Bug::none;
};

// Bugs in the reduction of elements.
inline constexpr Bug kFoldBugs[] = {Bug::operands_swapped, Bug::rounds_every_hop,  Bug::sums_in_float32,
                                    Bug::lost_nan,         Bug::denormals_flushed, Bug::saturates,
                                    Bug::avg_floor,        Bug::signed_compare};

struct Agreement {
  std::size_t elements = 0;  // that were compared
  std::string difference;    // one of them, in words; empty: they agree
};

// Calls of the collective on 64-bit integers, with every operator and every root, on few ranks. Deterministic.
Agreement compare(Collective collective, const Mistake& mistake = {});
// Reductions of elements of every type by every operator.
Agreement compare_folds(const Mistake& mistake = {});

// All of it, with and without mistakes, in a line for the self-test.
struct AgreementReport {
  bool is_good = true;
  std::string text;
};
AgreementReport compare_all();

}  // namespace col::colcheck
