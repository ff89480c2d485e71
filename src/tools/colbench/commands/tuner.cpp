#include "colbench/commands/tuner.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "colbench/commands/ranking.hpp"

namespace col::colbench {
namespace {

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

void find_ranges(TunedSeries& series) {
  if (!depends_on_size(series.cell.operation)) {
    series.ranges = {one_range(series.points)};
    return;
  }
  series.ranges = tuned_ranges(series.points);
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

TuneResult tune(const Measure& measure, const Method& method, std::span<const CellSpec> cells, double precision,
                int refinements) {
  TuneResult tuned;
  const Results grid = measure(method, cells);
  keep_facts(tuned, grid);
  if (!tuned.ended_early.empty()) return tuned;
  tuned.series = series_of(grid);
  for (TunedSeries& series : tuned.series) find_ranges(series);
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
