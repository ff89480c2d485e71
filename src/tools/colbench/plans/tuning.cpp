#include "colbench/plans/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <col/plan.hpp>
#include <col/select.hpp>

#include "colbench/plans/comparison.hpp"

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

bool is_same(const TunedSeries& series, const Cell& cell) {
  return series.cell.operation == cell.spec.operation && series.cell.ranks == cell.spec.ranks &&
         series.backend == cell.backend;
}

TunedPoint& point_at(std::vector<TunedPoint>& points, std::size_t bytes) {
  const auto place = std::lower_bound(points.begin(), points.end(), bytes,
                                      [](const TunedPoint& point, std::size_t b) { return point.bytes < b; });
  if (place != points.end() && place->bytes == bytes) return *place;
  return *points.insert(place, TunedPoint{.bytes = bytes});
}

// What the built-in table takes, of what was measured.
std::optional<std::string> built_in_choice(const TunedSeries& series, const TunedPoint& point) {
  const SelectionQuery query{.collective = collective_of(series.cell.operation).value(),
                             .ranks = group_size_of(series.cell),
                             .bytes = point.bytes,
                             .backend = series.backend};
  const auto choice = choose(SelectionTable::built_in(), query, [&](const AlgorithmSpec& spec) {
    return point.find(spec.text()) == nullptr ? std::optional<std::string>("not measured") : std::nullopt;
  });
  return choice ? std::optional(choice->algorithm.text()) : std::nullopt;
}

// What the built-in table takes stays where nothing is certainly better: chance must not change a table.
void keep_built_in_choices(TunedSeries& series) {
  for (TunedRange& range : series.ranges) {
    const auto points = std::span(series.points).subspan(range.first, range.last - range.first + 1);
    for (const TunedPoint& point : points) {
      const auto choice = built_in_choice(series, point);
      const auto is_good_at = [&](const TunedPoint& other) {
        const TunedEntry* entry = other.find(*choice);
        return entry != nullptr && as_good_as(*entry, other.fastest());
      };
      if (!choice || !std::ranges::all_of(points, is_good_at)) continue;
      range.algorithm = *choice;
      break;
    }
  }
}

void find_ranges(TunedSeries& series) {
  const bool by_size = depends_on_size(series.cell.operation);
  series.ranges = by_size ? tuned_ranges(series.points) : std::vector{one_range(series.points)};
  keep_built_in_choices(series);
  for (std::size_t i = 0; i + 1 < series.ranges.size(); ++i) {
    const TunedRange& lower = series.ranges[i];
    const TunedRange& upper = series.ranges[i + 1];
    series.crossovers.push_back(
        {series.points[lower.last].bytes, series.points[upper.first].bytes, lower.algorithm, upper.algorithm});
  }
}

// What to measure to know the crossover better; nothing when it is known.
std::vector<CellSpec> cells_between(const TunedSeries& series, const Crossover& crossover, double precision) {
  const auto middle = crossover.is_known(precision) ? std::nullopt : crossover.middle();
  if (!middle) return {};
  CellSpec cell = series.cell;
  cell.backend = series.backend;
  cell.bytes = *middle;
  cell.bytes = whole_bytes(cell, cell.ranks);
  if (cell.bytes <= crossover.below || cell.bytes >= crossover.above) return {};
  std::vector<CellSpec> cells(2, cell);
  cells[0].algorithm = crossover.lower;
  cells[1].algorithm = crossover.upper;
  return cells;
}

void learn(std::vector<TunedSeries>& all, const Results& results) {
  for (const TunedSeries& found : series_of(results)) {
    for (TunedSeries& series : all) {
      if (series.cell.operation != found.cell.operation || series.backend != found.backend) continue;
      for (Crossover& crossover : series.crossovers) {
        for (const TunedPoint& point : found.points) crossover.learn(point);
      }
    }
  }
}

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

void keep_facts(TuneResult& tuned, const Results& results) {
  if (tuned.run.host.empty()) tuned.run = results.run;
  for (const std::string& warning : results.warnings) {
    const bool is_new = std::none_of(tuned.warnings.begin(), tuned.warnings.end(), [&](const std::string& other) {
      return without_digits(other) == without_digits(warning);
    });
    if (is_new) tuned.warnings.push_back(warning);
  }
  for (const Cell& cell : results.cells) {
    if (!cell.invalid.empty()) tuned.left_out.push_back(fmt::format("{}: {}", text_of(cell.spec), cell.invalid));
  }
  tuned.ended_early = results.ended_early;
  if (tuned.exit_code == 0) tuned.exit_code = results.exit_code;
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

bool depends_on_size(Operation operation) {
  return operation != Operation::gatherv && operation != Operation::scatterv && operation != Operation::alltoallv &&
         operation != Operation::barrier;
}

std::vector<TunedSeries> series_of(const Results& results) {
  std::vector<TunedSeries> all;
  for (const Cell& cell : results.cells) {
    if (!cell.invalid.empty()) continue;
    const CellStatistics statistics = statistics_of(cell);
    if (statistics.n == 0) continue;
    auto series = std::find_if(all.begin(), all.end(), [&](const TunedSeries& s) { return is_same(s, cell); });
    if (series == all.end()) series = all.insert(all.end(), TunedSeries{.cell = cell.spec, .backend = cell.backend});
    TunedPoint& point = point_at(series->points, cell.spec.bytes);
    const std::string name = algorithm_of(cell);
    if (point.find(name) == nullptr)
      point.entries.push_back({name, statistics.median, statistics.low, statistics.high});
  }
  return all;
}

bool is_backends_own(Operation operation, const std::string& algorithm) {
  const AlgorithmSpec spec = AlgorithmSpec::parse(algorithm);
  return spec.file.empty() && find_algorithm(collective_of(operation).value(), spec.name) == nullptr;
}

std::vector<TunedSeries> with_plans_alone(std::vector<TunedSeries> all) {
  std::vector<TunedSeries> result;
  for (TunedSeries& series : all) {
    const auto is_own = [operation = series.cell.operation](const std::string& algorithm) {
      return is_backends_own(operation, algorithm);
    };
    TunedSeries plans{.cell = series.cell, .backend = series.backend, .points = series.points};
    const auto best = std::ranges::find_if(series.ranges, is_own, &TunedRange::algorithm);
    if (best != series.ranges.end()) plans.without = best->algorithm;
    for (TunedPoint& point : plans.points)
      std::erase_if(point.entries, [&](const TunedEntry& e) { return is_own(e.algorithm); });
    std::erase_if(plans.points, [](const TunedPoint& point) { return point.entries.empty(); });
    result.push_back(std::move(series));
    if (plans.without.empty() || plans.points.empty()) continue;
    find_ranges(plans);
    result.push_back(std::move(plans));
  }
  return result;
}

TuneResult tune(const Measure& measure, const Method& method, std::span<const CellSpec> cells, double precision,
                int refinements) {
  TuneResult tuned;
  const Results grid = measure(method, cells);
  keep_facts(tuned, grid);
  if (!tuned.ended_early.empty()) return tuned;
  tuned.series = series_of(grid);
  for (TunedSeries& series : tuned.series) find_ranges(series);
  tuned.series = with_plans_alone(std::move(tuned.series));
  for (int i = 0; i < refinements; ++i) {
    std::vector<CellSpec> more;
    for (const TunedSeries& series : tuned.series) {
      for (const Crossover& crossover : series.crossovers) {
        for (CellSpec& cell : cells_between(series, crossover, precision)) {
          if (std::find(more.begin(), more.end(), cell) == more.end()) more.push_back(std::move(cell));
        }
      }
    }
    if (more.empty()) break;
    const Results between = measure(method, more);
    keep_facts(tuned, between);
    if (!tuned.ended_early.empty()) {
      tuned.series.clear();
      return tuned;
    }
    learn(tuned.series, between);
  }
  return tuned;
}

}  // namespace col::colbench
