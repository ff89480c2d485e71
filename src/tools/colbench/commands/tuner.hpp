// Measures algorithms against each other until the sizes are known at which the fastest changes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "colbench/commands/tuning.hpp"
#include "colbench/measure.hpp"

namespace col::colbench {

// One collective on one number of ranks over one backend.
struct TunedSeries {
  CellSpec cell;        // its bytes and algorithm have no meaning
  std::string backend;  // what ran
  std::vector<TunedPoint> points = {};
  std::vector<TunedRange> ranges = {};
  std::vector<Crossover> crossovers = {};  // one less than ranges
};

struct TuneResult {
  std::vector<TunedSeries> series = {};
  RunFacts run = {};                       // of the first measurement
  std::vector<std::string> warnings = {};  // those that differ in numbers only, once
  std::vector<std::string> left_out = {};  // cells that count for nothing, and why
  std::string ended_early = {};
  int exit_code = 0;
};

// Measures `cells`, and then sizes between them wherever the best algorithm changes, until the place is known to a
// factor of `precision`, or after `refinements` steps. If a run ends early, it ends too: `series` is then empty.
TuneResult tune(const Measure& measure, const Method& method, std::span<const CellSpec> cells, double precision,
                int refinements);

// The samples of cells that count, by what they are of and by size.
std::vector<TunedSeries> series_of(const Results& results);

// Whether rules for it may depend on the size: in some v-forms the ranks do not all know it.
bool depends_on_size(Operation operation);

}  // namespace col::colbench
