// The closed formulas behind closed_form_seconds(), and their text.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include <col/plan.hpp>

#include "plan/segments.hpp"
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

struct CostFormula {
  Collective collective;
  std::string_view algorithm;
  std::string_view text;  // with the letters that docs/algorithms.md explains
  double (*seconds)(const CostTerms& terms);
};

std::span<const CostFormula> cost_formulas() noexcept;
// Null if there is none.
const CostFormula* find_cost_formula(const Algorithm& algorithm) noexcept;

}  // namespace col::plan
