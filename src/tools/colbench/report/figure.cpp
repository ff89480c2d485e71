#include "colbench/report/figure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/facets.hpp"
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

std::string name_of(const Series& series, const std::vector<Cell>& cells, const RowName& given) {
  if (given) {
    if (std::string name = given(series.spec); !name.empty()) return name;
  }
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

PlotPanel panel_of(std::string title, const std::vector<Cell>& cells, const RowName& name) {
  PlotPanel panel{std::move(title), fmt::format("{}", fmt::join(shared_words(cells), ", ")), {}};
  for (const Series& series : series_of(cells)) panel.curves.push_back(curve_of(series, name_of(series, cells, name)));
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

// What a curve's marker needs to both of its sides, as a factor on a logarithmic axis.
constexpr double kMargin = 1.25;

std::pair<double, double> range_of(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}

// 1, 2 and 5 times a power of ten where there are few decades, else powers of ten; minor ones between.
Axis decimal_axis(const std::vector<double>& values, std::string (*label)(double)) {
  auto [low, high] = range_of(values);
  low /= kMargin;
  high *= kMargin;
  constexpr double kLeastSpan = 4;  // so that noise does not fill the panel
  if (const double span = high / low; span < kLeastSpan) {
    low /= std::sqrt(kLeastSpan / span);
    high *= std::sqrt(kLeastSpan / span);
  }
  const double decades = std::log10(high / low);
  const int step = decades > 8 ? 2 : 1;
  Axis axis{low, high, {}};
  for (int decade = static_cast<int>(std::floor(std::log10(low))); decade <= std::ceil(std::log10(high)); ++decade) {
    for (int digit = 1; digit < 10; ++digit) {
      const double value = digit * std::pow(10.0, decade);
      if (value < low || value > high) continue;
      const bool some = decades < 2.2 && (digit == 2 || digit == 5);
      const bool labelled = (digit == 1 && decade % step == 0) || some || decades < 0.9;
      axis.ticks.push_back({value, labelled ? label(value) : ""});
    }
  }
  return axis;
}

// "200 ns", "1 us", "50 ms".
std::string time_label(double seconds) {
  constexpr double kAlmost = 0.9999;  // 1e-6 is not exact
  if (seconds < 1e-6 * kAlmost) return fmt::format("{:.3g} ns", seconds * 1e9);
  if (seconds < 1e-3 * kAlmost) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < kAlmost) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string plain_label(double value) {
  return fmt::format("{:.6g}", value);
}

void add_values(const std::vector<CurvePoint>& points, std::vector<double>& values) {
  for (const CurvePoint& point : points) {
    for (const double value : {point.value, point.low, point.high}) {
      if (value > 0 && std::isfinite(value)) values.push_back(value);
    }
  }
}

}  // namespace

Figure figure_of(const Results& results, const RowName& name) {
  Figure figure;
  std::vector<std::pair<Operation, int>> kinds;
  for (const Cell& cell : results.cells) {
    const std::pair kind(cell.spec.operation, cell.spec.ranks);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  for (const auto& [operation, ranks] : kinds) {
    std::vector<Cell> cells;
    for (const Cell& cell : results.cells) {
      if (cell.spec.operation == operation && cell.spec.ranks == ranks && is_drawable(cell)) cells.push_back(cell);
    }
    std::string title(to_string(operation));
    const auto is_of_it = [operation = operation](const auto& kind) { return kind.first == operation; };
    if (std::count_if(kinds.begin(), kinds.end(), is_of_it) > 1)
      title += ", " + tools::counted(static_cast<std::size_t>(ranks), "rank");
    if (!cells.empty()) figure.panels.push_back(panel_of(std::move(title), cells, name));
  }
  figure.notes = notes_of(results);
  return figure;
}

Axis size_axis(const std::vector<double>& bytes) {
  constexpr int kMostLabels = 8;
  const auto [least, most] = range_of(bytes);
  const bool one = least == most;
  Axis axis{least / (one ? 4 : 1.5), most * (one ? 4 : 1.5), {}};
  const int first = static_cast<int>(std::ceil(std::log2(axis.low)));
  const int last = static_cast<int>(std::floor(std::log2(axis.high)));
  int step = 1;
  while ((last - first) / step + 1 > kMostLabels) ++step;
  for (int power = std::max(0, first); power <= last; ++power) {
    const bool labelled = (power - first) % step == 0;
    axis.ticks.push_back({std::exp2(power), labelled ? size_text(std::size_t{1} << power) : ""});
  }
  return axis;
}

Axis time_axis(const std::vector<double>& seconds) {
  return decimal_axis(seconds, time_label);
}

Axis bandwidth_axis(const std::vector<double>& gigabytes_per_second) {
  return decimal_axis(gigabytes_per_second, plain_label);
}

std::vector<double> sizes_in(const PlotPanel& panel) {
  std::vector<double> sizes;
  for (const Curve& curve : panel.curves) {
    for (const CurvePoint& point : curve.time) sizes.push_back(point.bytes);
  }
  return sizes;
}

std::vector<double> times_in(const PlotPanel& panel) {
  std::vector<double> values;
  for (const Curve& curve : panel.curves) {
    add_values(curve.time, values);
    add_values(curve.time_bound, values);
  }
  return values;
}

std::vector<double> bandwidths_in(const PlotPanel& panel) {
  std::vector<double> values;
  for (const Curve& curve : panel.curves) {
    add_values(curve.bandwidth, values);
    add_values(curve.bandwidth_bound, values);
  }
  return values;
}

double width_of_text(std::string_view text, double font_size) {
  constexpr double kMean = 0.56;  // of a sans-serif letter's width to the font's size
  return static_cast<double>(tools::columns_of(text)) * kMean * font_size;
}

Legend legend_of(const PlotPanel& panel, double width, double font_size) {
  constexpr double kSample = 58;  // pixels for a piece of the curve, and for space
  double widest = 0;
  for (const Curve& curve : panel.curves) widest = std::max(widest, width_of_text(curve.name, font_size));
  Legend legend;
  const auto fitting = static_cast<std::size_t>(std::max(1.0, width / (widest + kSample)));
  const std::size_t count = panel.curves.size();
  legend.columns = std::min({fitting, count, std::size_t{4}});
  legend.rows = (count + legend.columns - 1) / legend.columns;
  legend.columns = (count + legend.rows - 1) / legend.rows;  // no column stands empty
  legend.column_width = std::min(width / static_cast<double>(legend.columns), widest + kSample);
  return legend;
}

std::vector<BoundLine> bounds_of(const PlotPanel& panel) {
  const auto same = [&](const std::vector<CurvePoint>& a, const std::vector<CurvePoint>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const CurvePoint& x, const CurvePoint& y) {
      constexpr double kSame = 0.01;  // no eye sees it
      return x.bytes == y.bytes && std::abs(x.value - y.value) <= kSame * x.value;
    });
  };
  std::vector<BoundLine> lines;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const Curve& curve = panel.curves[i];
    if (curve.time_bound.empty()) continue;
    const auto found = std::find_if(lines.begin(), lines.end(), [&](const BoundLine& line) {
      return same(panel.curves[line.curve].time_bound, curve.time_bound);
    });
    if (found == lines.end()) {
      lines.push_back({i, false});
    } else {
      found->shared = true;
    }
  }
  return lines;
}

}  // namespace col::colbench
