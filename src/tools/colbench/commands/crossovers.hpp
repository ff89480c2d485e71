// At which sizes the fastest algorithm changes, by a cost that can be asked for at any size.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace col::colbench {

// Of candidate number `candidate` at that size; nothing when it has none there.
using CostAt = std::function<std::optional<double>(std::size_t candidate, std::size_t bytes)>;

// The candidate is the fastest at `least` and at `most`, and where it was asked for in between.
struct BestRange {
  std::size_t least = 0, most = 0;  // bytes
  std::size_t candidate = 0;
};

// `sizes` is ascending. Where the fastest differs from one size to the next, the place is looked for in between until
// it is known to a factor of `precision`. Of equal ones the first is the fastest. Sizes at which no candidate has a
// cost are left out.
//
// Costs are taken to grow with the size: a candidate that is slower at the lower end than the fastest at the upper one
// is not asked for in between.
std::vector<BestRange> best_ranges(std::span<const std::size_t> sizes, std::size_t candidates, const CostAt& cost,
                                   double precision = 1.1);

// "up to 12K: bde; 12K to 3M: rabenseifner; above 3M: ring", a line each when there are more. `sizes` as above.
std::vector<std::string> range_lines(std::span<const BestRange> ranges,
                                     const std::function<std::string(std::size_t candidate)>& name);

}  // namespace col::colbench
