#include "colbench/report/report.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/facets.hpp"
#include "colbench/report/summary.hpp"
#include "colbench/report/values.hpp"
#include "common/command_line.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr double kGiga = 1e9;

// Cells of one series: equal except for their size.
struct Line {
  CellSpec spec;  // its size is 0
  std::vector<Cell> cells;
};

bool is_drawable(const Cell& cell) {
  return cell.invalid.empty() && cell.spec.bytes > 0 && statistics_of(cell).median > 0;
}

std::vector<Line> lines_of(const std::vector<Cell>& cells) {
  std::vector<Line> list;
  for (const Cell& cell : cells) {
    CellSpec spec = cell.spec;
    spec.bytes = 0;
    auto found = std::find_if(list.begin(), list.end(), [&](const Line& line) { return line.spec == spec; });
    if (found == list.end()) found = list.insert(list.end(), {spec, {}});
    found->cells.push_back(cell);
  }
  for (Line& line : list) {
    std::stable_sort(line.cells.begin(), line.cells.end(),
                     [](const Cell& a, const Cell& b) { return a.spec.bytes < b.spec.bytes; });
  }
  return list;
}

// "ring"; what a choice of the library's came to is in brackets: "auto (mst, ring)".
std::string algorithm_name(const Line& line) {
  if (!was_chosen(line.cells.front())) return words_of(line.cells.front(), Facet::algorithm);
  std::vector<std::string> chosen;
  for (const Cell& cell : line.cells) {
    const std::string name = tools::one_line(cell.algorithm);
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) chosen.push_back(name);
  }
  return fmt::format("auto ({})", fmt::join(chosen, ", "));
}

std::string name_of(const Line& line, const std::vector<Cell>& cells) {
  std::vector<std::string> parts;
  for (const Facet facet : kFacets) {
    if (facet == Facet::size || facet == Facet::operation) continue;
    const bool algorithm = facet == Facet::algorithm;
    if (!algorithm && !varies(cells, facet)) continue;
    const std::string words = algorithm ? algorithm_name(line) : words_of(line.cells.front(), facet);
    if (!words.empty()) parts.push_back(words);
  }
  if (parts.empty()) parts.emplace_back(to_string(line.spec.operation));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "1 us", "50 ms".
std::string time_tick(double seconds) {
  constexpr double kAlmost = 0.9999;  // 1e-6 is not exact
  if (seconds < 1e-6 * kAlmost) return fmt::format("{:.3g} ns", seconds * 1e9);
  if (seconds < 1e-3 * kAlmost) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < kAlmost) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

constexpr tools::NumberText kSizeText = [](double bytes) { return size_text(static_cast<std::size_t>(bytes)); };
constexpr tools::NumberText kTimeText = [](double seconds) { return time_text(seconds); };
constexpr tools::NumberText kRateTick = [](double gigabytes) { return fmt::format("{:.6g}", gigabytes); };
constexpr tools::NumberText kRateText = [](double gigabytes) { return bandwidth_text(gigabytes * kGiga) + " GB/s"; };

// The same cells in both charts; in that of bandwidths, without those that have none.
void add_points(const Cell& cell, tools::Series& time, tools::Series& rate) {
  const CellStatistics stats = statistics_of(cell);
  const auto bytes = static_cast<double>(cell.spec.bytes);
  const bool known = stats.low > 0 && std::isfinite(stats.high);
  const double low = known ? stats.low : kNothing, high = known ? stats.high : kNothing;
  const bool bound = cell.bound.seconds > 0;
  time.points.push_back({bytes, stats.median, low, high});
  if (bound) time.bound.push_back({bytes, cell.bound.seconds});
  const int size = group_size_of(cell.spec);
  const auto rate_of = [&](double seconds) { return bus_bandwidth(cell.spec, size, seconds) / kGiga; };
  if (size < 2 || rate_of(stats.median) <= 0) return;
  rate.points.push_back(
      {bytes, rate_of(stats.median), known ? rate_of(high) : kNothing, known ? rate_of(low) : kNothing});
  if (bound) rate.bound.push_back({bytes, rate_of(cell.bound.seconds)});
}

tools::Figure figure_of(std::string title, const std::vector<Cell>& cells) {
  tools::Chart times{"Time of one operation, median", time_tick, kTimeText};
  tools::Chart rates{"Bus bandwidth, GB/s", kRateTick, kRateText};
  for (const Line& line : lines_of(cells)) {
    tools::Series time{name_of(line, cells)}, rate = time;
    for (const Cell& cell : line.cells) add_points(cell, time, rate);
    times.series.push_back(std::move(time));
    rates.series.push_back(std::move(rate));
  }
  tools::Figure figure{std::move(title),
                       fmt::format("{}", fmt::join(shared_words(cells), ", ")),
                       "size in bytes",
                       kSizeText,
                       {std::move(times)}};
  if (figure.has_bars()) figure.title += " of " + size_text(cells.front().spec.bytes);
  if (std::ranges::any_of(rates.series, [](const tools::Series& series) { return !series.points.empty(); }))
    figure.charts.push_back(std::move(rates));
  return figure;
}

bool has_bound(const tools::Figure& figure) {
  return std::ranges::any_of(figure.charts.front().series,
                             [](const tools::Series& series) { return !series.bound.empty(); });
}

std::vector<std::string> remarks_of(const Results& results) {
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

// How to read them.
void add_key(tools::Part& part) {
  for (const bool bars : {false, true}) {
    bool any = false, bounds = false;
    for (const tools::Figure& figure : part.figures) {
      if (figure.has_bars() != bars) continue;
      any = true;
      bounds = bounds || has_bound(figure);
    }
    if (!any) continue;
    std::string text = bars ? "Bars: medians, the fastest first; lines in them: their 95 % intervals."
                            : "Points: medians. Bands: their 95 % intervals.";
    if (bounds)
      text += bars ? " The line across a bar: what this machine allows."
                   : " Dashed: what this machine allows; grey where curves share it.";
    part.notes.push_back({std::move(text)});
  }
}

}  // namespace

tools::Part figures_of(const Results& results) {
  constexpr std::size_t kMostSeries = 40;  // more cannot be told from each other
  tools::Part part{.title = "Figures"};
  std::vector<std::pair<Operation, int>> kinds;
  for (const Cell& cell : results.cells) {
    const std::pair kind(cell.spec.operation, cell.spec.ranks);
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  std::vector<std::string> crowded;
  for (const auto& [operation, ranks] : kinds) {
    std::vector<Cell> cells;
    for (const Cell& cell : results.cells) {
      if (cell.spec.operation == operation && cell.spec.ranks == ranks && is_drawable(cell)) cells.push_back(cell);
    }
    if (cells.empty()) continue;
    std::string title(to_string(operation));
    const auto is_of_it = [operation = operation](const auto& kind) { return kind.first == operation; };
    if (std::ranges::count_if(kinds, is_of_it) > 1)
      title += ", " + tools::counted(static_cast<std::size_t>(ranks), "rank");
    tools::Figure figure = figure_of(std::move(title), cells);
    if (const std::size_t count = figure.charts.front().series.size(); count > kMostSeries)
      crowded.push_back(fmt::format("Not drawn: {}, whose {} series nobody could tell apart.", figure.title, count));
    else
      part.figures.push_back(std::move(figure));
  }
  add_key(part);
  for (const std::string& text : crowded) part.notes.push_back({text});
  for (const std::string& text : remarks_of(results)) part.notes.push_back({text});
  return part;
}

std::string plot_svg(const Results& results) {
  tools::Part part = figures_of(results);
  if (part.figures.empty())
    throw tools::UsageError("there is nothing to draw: no operation with a size was measured and found good");
  part.title = "colbench: time and bus bandwidth over size";
  return svg_document(part);
}

void check_plot(const std::string& option, const std::string& path) {
  if (path.ends_with(".svg")) return;
  throw tools::UsageError(
      "{} {}: a drawing is SVG; end its name with .svg, and convert it where you need another form: rsvg-convert "
      "x.svg -o x.png",
      option, tools::one_line(path));
}

}  // namespace col::colbench
