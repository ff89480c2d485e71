// The terms of the closed formulas of the algorithms (Algorithm::cost).
//
// Most formulas are exact where simulate() has one node and nothing shared, and all blocks are equal; the others say by
// how much they miss. They leave out copies: CostModel::copy is 0 by default.
//
// Sources: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005; E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
// experience, Concurrency and Computation 19(13), 2007; and the papers named in each algorithm's own file.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <col/plan.hpp>

#include "plan/blocks.hpp"
#include "plan/support.hpp"

namespace col::plan {

// The variables of a formula.
struct CostTerms {
  // Segments are counted in elements, but a formula knows only bytes.
  static constexpr double kSegmentElementSize = 4;

  int p;
  double n;        // bytes
  double a, b, g;  // alpha and beta between ranks of one node, gamma
  PlanParameters parameters;

  int logarithm() const { return ceil_log2(p); }
  // The number of groups that remain when p is folded to a power of two (folding.hpp).
  int groups() const { return 1 << floor_log2(p); }
  int floor_logarithm() const { return floor_log2(p); }
  bool folds() const { return groups() != p; }
  // The time to fold whole vectors: in before, and out after.
  double folding() const { return folds() ? 2 * message(n) + add(n) : 0; }
  double f() const { return fraction(p); }
  static double fraction(int parts) { return static_cast<double>(parts - 1) / parts; }
  double message(double bytes) const { return a + bytes * b; }
  double add(double bytes) const { return bytes * g; }
  // How many segments this number of bytes is cut into.
  double segments(double bytes) const {
    const std::size_t elements = parameters.segment == 0 ? kDefaultSegment : parameters.segment;
    return std::max(1.0, std::ceil(bytes / (static_cast<double>(elements) * kSegmentElementSize)));
  }
};

// ---- Formulas of more than one algorithm; the others are in the algorithms' own files ----

inline double in_steps_of_one_block(const CostTerms& t) {
  return (t.p - 1) * t.message(t.n / t.p);
}

inline double in_doubling_steps(const CostTerms& t) {
  return t.logarithm() * t.a + t.f() * t.n * t.b;
}

inline double reduce_scatter_in_steps(const CostTerms& t) {
  return in_steps_of_one_block(t) + t.f() * t.add(t.n);
}

}  // namespace col::plan
