#include "colbench/report/figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/facets.hpp"
#include "colbench/report/head.hpp"
#include "colbench/report/summary.hpp"
#include "colbench/report/values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr double kGiga = 1e9;

// Cells of one curve: equal except for their size.
struct Series {
  CellSpec spec;  // its size is 0
  std::vector<Cell> cells;
};

bool is_drawable(const Cell& cell) {
  return cell.invalid.empty() && cell.spec.bytes > 0 && statistics_of(cell).median > 0;
}

std::vector<Series> series_of(const std::vector<Cell>& cells) {
  std::vector<Series> list;
  for (const Cell& cell : cells) {
    CellSpec spec = cell.spec;
    spec.bytes = 0;
    auto found = std::find_if(list.begin(), list.end(), [&](const Series& series) { return series.spec == spec; });
    if (found == list.end()) found = list.insert(list.end(), {spec, {}});
    found->cells.push_back(cell);
  }
  for (Series& series : list) {
    std::stable_sort(series.cells.begin(), series.cells.end(),
                     [](const Cell& a, const Cell& b) { return a.spec.bytes < b.spec.bytes; });
  }
  return list;
}

// "ring"; what a choice of the library's came to is in brackets: "auto (mst, ring)".
std::string algorithm_name(const Series& series) {
  if (!was_chosen(series.cells.front())) return words_of(series.cells.front(), Facet::algorithm);
  std::vector<std::string> chosen;
  for (const Cell& cell : series.cells) {
    const std::string name = tools::one_line(cell.algorithm);
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) chosen.push_back(name);
  }
  return fmt::format("auto ({})", fmt::join(chosen, ", "));
}

std::string name_of(const Series& series, const std::vector<Cell>& cells) {
  std::vector<std::string> parts;
  for (const Facet facet : kFacets) {
    if (facet == Facet::size || facet == Facet::operation) continue;
    const bool algorithm = facet == Facet::algorithm;
    if (!algorithm && !varies(cells, facet)) continue;
    const std::string words = algorithm ? algorithm_name(series) : words_of(series.cells.front(), facet);
    if (!words.empty()) parts.push_back(words);
  }
  if (parts.empty()) parts.emplace_back(to_string(series.spec.operation));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Curve curve_of(const Series& series, std::string name) {
  Curve curve{std::move(name), {}, {}, {}, {}};
  for (const Cell& cell : series.cells) {
    const CellStatistics stats = statistics_of(cell);
    const auto bytes = static_cast<double>(cell.spec.bytes);
    const bool known = stats.low > 0 && std::isfinite(stats.high);
    curve.time.push_back({bytes, stats.median, known ? stats.low : kNothing, known ? stats.high : kNothing});
    if (cell.bound.seconds > 0) curve.time_bound.push_back({bytes, cell.bound.seconds});
    const int size = group_size_of(cell.spec);
    const auto rate = [&](double seconds) { return bus_bandwidth(cell.spec, size, seconds) / kGiga; };
    if (size < 2 || rate(stats.median) <= 0) continue;
    curve.bandwidth.push_back(
        {bytes, rate(stats.median), known ? rate(stats.high) : kNothing, known ? rate(stats.low) : kNothing});
    if (cell.bound.seconds > 0) curve.bandwidth_bound.push_back({bytes, rate(cell.bound.seconds)});
  }
  return curve;
}

PlotPanel panel_of(Operation operation, const std::vector<Cell>& cells) {
  constexpr std::array kShared = {Facet::backend, Facet::device, Facet::dtype, Facet::op,
                                  Facet::ranks,   Facet::root,   Facet::place, Facet::cadence,
                                  Facet::cache,   Facet::groups, Facet::pair};
  PlotPanel panel{
      std::string(to_string(operation)), fmt::format("{}", fmt::join(shared_words(cells, kShared), ", ")), {}};
  for (const Series& series : series_of(cells)) panel.curves.push_back(curve_of(series, name_of(series, cells)));
  return panel;
}

std::vector<std::string> notes_of(const Results& results) {
  constexpr std::size_t kMostBarriers = 4;
  std::vector<std::string> notes;
  std::vector<std::string> barriers;
  std::size_t left_out = 0;
  for (const Cell& cell : results.cells) {
    if (is_drawable(cell)) continue;
    const CellStatistics stats = statistics_of(cell);
    const bool good = cell.invalid.empty() && stats.n > 0;
    if (good && cell.spec.operation == Operation::barrier) {
      barriers.push_back(fmt::format("{} ({})", time_text(stats.median), value_of(cell, Facet::algorithm)));
    } else {
      ++left_out;
    }
  }
  if (barriers.size() > kMostBarriers) {
    barriers.resize(kMostBarriers);
    barriers.emplace_back("…");
  }
  if (!barriers.empty()) notes.push_back(fmt::format("A barrier has no size; it takes {}.", fmt::join(barriers, ", ")));
  if (left_out > 0) {
    notes.push_back(fmt::format("Not drawn: {} that {} invalid or not measured.", tools::counted(left_out, "row"),
                                left_out == 1 ? "is" : "are"));
  }
  notes.push_back(run_text(results) + ".");
  return notes;
}

}  // namespace

Figure figure_of(const Results& results) {
  Figure figure;
  std::vector<Operation> operations;
  for (const Cell& cell : results.cells) {
    const Operation operation = cell.spec.operation;
    if (std::find(operations.begin(), operations.end(), operation) == operations.end()) operations.push_back(operation);
  }
  for (const Operation operation : operations) {
    std::vector<Cell> cells;
    for (const Cell& cell : results.cells) {
      if (cell.spec.operation == operation && is_drawable(cell)) cells.push_back(cell);
    }
    if (!cells.empty()) figure.panels.push_back(panel_of(operation, cells));
  }
  figure.notes = notes_of(results);
  return figure;
}

}  // namespace col::colbench
