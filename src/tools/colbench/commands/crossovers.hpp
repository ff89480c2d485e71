// Finds the sizes at which the fastest algorithm changes, for a cost that can be computed at any size.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace col::colbench {

// The cost of candidate number `candidate` at that size; nothing if it has none there.
using CostAt = std::function<std::optional<double>(std::size_t candidate, std::size_t bytes)>;

// The candidate is the fastest at `least`, at `most`, and at all sizes in between that were tried.
struct BestRange {
  std::size_t least = 0, most = 0;  // bytes
  std::size_t candidate = 0;
};

// `sizes` is ascending. If the fastest candidate differs between two neighbouring sizes, the place of the change is
// searched until it is known to a factor of `precision`. Among equal candidates, the first one counts as the fastest.
// Sizes at which no candidate has a cost are left out.
//
// It assumes that costs grow with the size: a candidate that is slower at the lower end than the fastest one at the
// upper end is not tried in between.
std::vector<BestRange> best_ranges(std::span<const std::size_t> sizes, std::size_t candidates, const CostAt& cost,
                                   double precision = 1.1);

// "up to 12K: bde; 12K to 3M: rabenseifner; above 3M: ring", on several lines if there are more. `sizes` as above.
std::vector<std::string> range_lines(std::span<const BestRange> ranges,
                                     const std::function<std::string(std::size_t candidate)>& name);

}  // namespace col::colbench
