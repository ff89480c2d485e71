// From measurements at some sizes to the shortest list of rules that they support. All functions are pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colbench/cell/results.hpp"

namespace col::colbench {

struct TunedEntry {
  std::string algorithm;
  double median = 0, low = 0, high = 0;  // seconds, and the interval of the median
};

// The measurements at one size.
struct TunedPoint {
  std::size_t bytes = 0;
  std::vector<TunedEntry> entries = {};
  const TunedEntry* find(const std::string& algorithm) const;
  // Requires: there are entries.
  const TunedEntry& fastest() const;
};

// Whether the measurement does not distinguish the two, or `entry` is faster.
bool as_good_as(const TunedEntry& entry, const TunedEntry& other);

// One algorithm for the sizes of neighbouring points, by index.
struct TunedRange {
  std::size_t first = 0, last = 0;
  std::string algorithm;
};
// As few ranges as possible, such that at every point the algorithm is as good as the fastest one there. Among the
// possible algorithms, each range has the one that is fastest overall. `points` is ascending; none is without entries.
std::vector<TunedRange> tuned_ranges(std::span<const TunedPoint> points);
// One algorithm for all of them: among those that were measured at all points, the one that is fastest overall.
TunedRange one_range(std::span<const TunedPoint> points);

// How many times as fast a range's algorithm is as the next one, overall (geometric mean).
struct Advantage {
  std::string next = {};  // empty: nothing else was measured
  double factor = 1;
  bool told_apart = false;  // for at least one size
};
Advantage advantage_of(std::span<const TunedPoint> points, const TunedRange& range);

// Between the last size at which one algorithm is better, and the first size at which another one is.
struct Crossover {
  std::size_t below = 0, above = 0;  // bytes
  std::string lower, upper;          // algorithms
  bool is_known(double precision) const;
  // The size in the middle; nothing if there is none in between.
  std::optional<std::size_t> middle() const;
  // Adds the measurements at such a size.
  void learn(const TunedPoint& point);
};

// ---- Measuring ------------------------------------------------------------------------------------------------------

// One collective for one number of ranks over one backend.
struct TunedSeries {
  CellSpec cell;        // its bytes and algorithm have no meaning
  std::string backend;  // the backend that ran
  // Not empty: this series is for the calls that this algorithm of the backend's own does not serve.
  std::string without = {};
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

// The ranges of a series are those of tuned_ranges(), but what the built-in table takes stays wherever it is as good as
// the fastest over a whole range. Measures `cells`, and then sizes between them wherever the best algorithm changes,
// until the place is known to a factor of `precision`, or after `refinements` steps. If a run ends early, it ends too:
// `series` is then empty.
TuneResult tune(const Measure& measure, const Method& method, std::span<const CellSpec> cells, double precision,
                int refinements);

// The samples of valid cells, by subject and size.
std::vector<TunedSeries> series_of(const Results& results);

// Whether it is no plan, but an algorithm that a backend brings, such as "shared".
bool is_backends_own(Operation operation, const std::string& algorithm);

// After each series in which one of the backend's own algorithms is best, the same without any of those: their rules
// decide the calls that these do not serve. Requires: ranges are found.
std::vector<TunedSeries> with_plans_alone(std::vector<TunedSeries> all);

// Whether its rules may depend on the size: in some v-forms, not all ranks know the size.
bool depends_on_size(Operation operation);

}  // namespace col::colbench
