#include "colbench/commands/crossovers.hpp"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "colbench/commands/units.hpp"

namespace col::colbench {
namespace {

class Search {
 public:
  Search(const CostAt& cost, double precision) : cost_(cost), precision_(precision) {}

  struct Best {
    std::size_t candidate = 0;
    double cost = 0;
  };
  std::optional<Best> best_at(std::size_t bytes, std::span<const std::size_t> candidates) const {
    std::optional<Best> best;
    for (const std::size_t candidate : candidates) {
      const auto cost = cost_(candidate, bytes);
      if (cost && (!best || *cost < best->cost)) best = Best{candidate, *cost};
    }
    return best;
  }

  // Adds the sizes between two sizes, and the upper one. Requires: the lower one is added.
  void between(std::size_t lower, Best at_lower, std::size_t upper, Best at_upper,
               std::span<const std::size_t> candidates) {
    const auto middle =
        static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(lower) * static_cast<double>(upper))));
    const bool near = static_cast<double>(upper) <= precision_ * static_cast<double>(lower);
    if (at_lower.candidate == at_upper.candidate || near || middle <= lower || middle >= upper) {
      add(upper, at_upper.candidate);
      return;
    }
    std::vector<std::size_t> possible;
    for (const std::size_t candidate : candidates) {
      const auto cost = cost_(candidate, lower);
      if (cost && *cost <= at_upper.cost) possible.push_back(candidate);
    }
    const auto best = best_at(middle, possible);
    if (!best) {
      add(upper, at_upper.candidate);
      return;
    }
    between(lower, at_lower, middle, *best, possible);
    between(middle, *best, upper, at_upper, possible);
  }

  void add(std::size_t bytes, std::size_t candidate) {
    if (!ranges_.empty() && ranges_.back().candidate == candidate)
      ranges_.back().most = bytes;
    else
      ranges_.push_back({bytes, bytes, candidate});
  }

  std::vector<BestRange> take() { return std::move(ranges_); }

 private:
  const CostAt& cost_;
  double precision_;
  std::vector<BestRange> ranges_;
};

}  // namespace

std::vector<BestRange> best_ranges(std::span<const std::size_t> sizes, std::size_t candidates, const CostAt& cost,
                                   double precision) {
  std::vector<std::size_t> all(candidates);
  std::iota(all.begin(), all.end(), std::size_t{0});
  Search search(cost, precision);
  std::optional<Search::Best> before;
  std::size_t lower = 0;
  for (const std::size_t bytes : sizes) {
    const auto best = search.best_at(bytes, all);
    if (!best) continue;
    if (before)
      search.between(lower, *before, bytes, *best, all);
    else
      search.add(bytes, best->candidate);
    before = best;
    lower = bytes;
  }
  return search.take();
}

std::vector<std::string> range_lines(std::span<const BestRange> ranges,
                                     const std::function<std::string(std::size_t candidate)>& name) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const BestRange& range = ranges[i];
    const bool first = i == 0, last = i + 1 == ranges.size();
    const std::string from = first ? "" : rough_size_text(ranges[i - 1].most);
    const std::string where = first && last ? "at all sizes"
                              : first       ? fmt::format("up to {}", rough_size_text(range.most))
                              : last        ? fmt::format("above {}", from)
                                            : fmt::format("{} to {}", from, rough_size_text(range.most));
    lines.push_back(fmt::format("{}: {}", where, name(range.candidate)));
  }
  return lines;
}

}  // namespace col::colbench
