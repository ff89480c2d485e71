// From measurements at some sizes to the shortest list of rules that they justify. All of it pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace col::colbench {

struct TunedEntry {
  std::string algorithm;
  double median = 0, low = 0, high = 0;  // seconds, and the interval of the median
};

// What was measured at one size.
struct TunedPoint {
  std::size_t bytes = 0;
  std::vector<TunedEntry> entries = {};
  const TunedEntry* find(const std::string& algorithm) const;
  // Requires: there are entries.
  const TunedEntry& fastest() const;
};

// Whether the measurement does not tell the two apart, or `entry` is the faster one.
bool as_good_as(const TunedEntry& entry, const TunedEntry& other);

// One algorithm for the sizes of neighbouring points, by index.
struct TunedRange {
  std::size_t first = 0, last = 0;
  std::string algorithm;
};
// As few ranges as possible, so that at every point the algorithm is as good as the fastest one there. Among those that
// are, each range has the one that is the fastest on the whole. `points` is ascending; none is without entries.
std::vector<TunedRange> tuned_ranges(std::span<const TunedPoint> points);
// One algorithm for all of them: among those that were measured at all points, the one that is fastest overall.
TunedRange one_range(std::span<const TunedPoint> points);

// How many times as fast a range's algorithm is as the next one, on the whole (geometric mean).
struct Advantage {
  std::string next = {};  // empty: nothing else was measured
  double factor = 1;
  bool told_apart = false;  // at one size at least
};
Advantage advantage_of(std::span<const TunedPoint> points, const TunedRange& range);

// Between the last size at which one algorithm is the better one, and the first at which another is.
struct Crossover {
  std::size_t below = 0, above = 0;  // bytes
  std::string lower, upper;          // algorithms
  bool is_known(double precision) const;
  // The size in the middle; nothing where none is in between.
  std::optional<std::size_t> middle() const;
  // What was measured at such a size.
  void learn(const TunedPoint& point);
};

}  // namespace col::colbench
