// Measures algorithms against each other until the sizes at which the fastest one changes are known.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "colbench/commands/tuning.hpp"
#include "colbench/measure.hpp"

namespace col::colbench {

// One collective for one number of ranks over one backend.
struct TunedSeries {
  CellSpec cell;        // its bytes and algorithm have no meaning
  std::string backend;  // the backend that ran
  std::vector<TunedPoint> points = {};
  std::vector<TunedRange> ranges = {};
  std::vector<Crossover> crossovers = {};  // one less than ranges
};

struct TuneResult {
  std::vector<TunedSeries> series = {};
  RunFacts run = {};                       // of the first measurement
  std::vector<std::string> warnings = {};  // warnings that differ only in numbers appear once
  std::vector<std::string> left_out = {};  // invalid cells, and the reasons
  std::string ended_early = {};
  int exit_code = 0;
};

// Measures `cells`, and then sizes between them wherever the best algorithm changes, until the place is known to a
// factor of `precision`, or after `refinements` steps. If a run ends early, it ends too: `series` is then empty.
TuneResult tune(const Measure& measure, const Method& method, std::span<const CellSpec> cells, double precision,
                int refinements);

// The samples of valid cells, by subject and size.
std::vector<TunedSeries> series_of(const Results& results);

// Whether its rules may depend on the size: in some v-forms, not all ranks know the size.
bool depends_on_size(Operation operation);

}  // namespace col::colbench
