#include "colbench/commands/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace col::colbench {
namespace {

// log2 of how many times longer than the fastest it takes, summed over the points; infinite where it was not measured.
double slowness(std::span<const TunedPoint> points, const TunedRange& range) {
  double sum = 0;
  for (std::size_t i = range.first; i <= range.last; ++i) {
    const TunedEntry* entry = points[i].find(range.algorithm);
    if (entry == nullptr) return std::numeric_limits<double>::infinity();
    sum += std::log2(entry->median / points[i].fastest().median);
  }
  return sum;
}

std::string fastest_of(std::span<const TunedPoint> points, TunedRange range, const std::vector<std::string>& names) {
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& name : names) {
    range.algorithm = name;
    const double slow = slowness(points, range);
    if (slow >= least && !best.empty()) continue;
    best = name;
    least = slow;
  }
  return best;
}

std::vector<std::string> names_at(const TunedPoint& point, bool good_ones_only) {
  std::vector<std::string> names;
  for (const TunedEntry& entry : point.entries) {
    if (!good_ones_only || as_good_as(entry, point.fastest())) names.push_back(entry.algorithm);
  }
  return names;
}

}  // namespace

const TunedEntry* TunedPoint::find(const std::string& algorithm) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const TunedEntry& entry) { return entry.algorithm == algorithm; });
  return found == entries.end() ? nullptr : &*found;
}

const TunedEntry& TunedPoint::fastest() const {
  return *std::min_element(entries.begin(), entries.end(),
                           [](const TunedEntry& a, const TunedEntry& b) { return a.median < b.median; });
}

bool as_good_as(const TunedEntry& entry, const TunedEntry& other) {
  return entry.median <= other.median || entry.low <= other.high;
}

// Each range reaches as far as any algorithm does: no other way to cut has fewer.
std::vector<TunedRange> tuned_ranges(std::span<const TunedPoint> points) {
  std::vector<TunedRange> ranges;
  std::vector<std::string> possible;
  const auto close = [&](std::size_t end) {
    if (ranges.empty()) return;
    ranges.back().last = end;
    ranges.back().algorithm = fastest_of(points, ranges.back(), possible);
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::vector<std::string> good = names_at(points[i], true);
    std::vector<std::string> still;
    for (const std::string& name : possible) {
      if (std::find(good.begin(), good.end(), name) != good.end()) still.push_back(name);
    }
    if (still.empty()) {
      if (i > 0) close(i - 1);
      ranges.push_back({i, i, {}});
      still = good;
    }
    possible = std::move(still);
  }
  if (!points.empty()) close(points.size() - 1);
  return ranges;
}

TunedRange one_range(std::span<const TunedPoint> points) {
  TunedRange range{0, points.size() - 1, {}};
  range.algorithm = fastest_of(points, range, names_at(points.front(), false));
  return range;
}

Advantage advantage_of(std::span<const TunedPoint> points, const TunedRange& range) {
  std::vector<std::string> others = names_at(points[range.first], false);
  std::erase(others, range.algorithm);
  Advantage advantage;
  TunedRange next = range;
  next.algorithm = fastest_of(points, range, others);
  const double slow = next.algorithm.empty() ? std::numeric_limits<double>::infinity() : slowness(points, next);
  if (!std::isfinite(slow)) return advantage;
  advantage.next = next.algorithm;
  const auto sizes = static_cast<double>(range.last - range.first + 1);
  advantage.factor = std::exp2((slow - slowness(points, range)) / sizes);
  for (std::size_t i = range.first; i <= range.last; ++i)
    advantage.told_apart =
        advantage.told_apart || points[i].find(range.algorithm)->high < points[i].find(next.algorithm)->low;
  return advantage;
}

bool Crossover::is_known(double precision) const {
  return static_cast<double>(above) <= precision * static_cast<double>(below);
}

std::optional<std::size_t> Crossover::middle() const {
  const double root = std::sqrt(static_cast<double>(std::max<std::size_t>(below, 1)) * static_cast<double>(above));
  const auto size = static_cast<std::size_t>(std::llround(root));
  return size > below && size < above ? std::optional(size) : std::nullopt;
}

void Crossover::learn(const TunedPoint& point) {
  const TunedEntry* const lower_entry = point.find(lower);
  const TunedEntry* const upper_entry = point.find(upper);
  if (lower_entry == nullptr || upper_entry == nullptr || point.bytes <= below || point.bytes >= above) return;
  (as_good_as(*lower_entry, *upper_entry) ? below : above) = point.bytes;
}

}  // namespace col::colbench
