#include "colbench/report/csv.hpp"

#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "colbench/report/facets.hpp"
#include "colbench/report/summary.hpp"

namespace col::colbench {
namespace {

using Fields = std::vector<std::pair<std::string_view, std::string>>;  // name and value

std::string quoted(std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(field);
  std::string text = "\"";
  for (const char letter : field) {
    if (letter == '"') text += '"';
    text += letter;
  }
  return text + '"';
}

// Without a decimal when it is whole.
std::string decimal(double value, int digits) {
  if (!std::isfinite(value)) return "";
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string nanoseconds(std::optional<double> seconds) {
  return seconds ? decimal(*seconds * 1e9, 1) : "";
}

std::string percent(std::optional<double> fraction) {
  return fraction ? decimal(*fraction * 100, 2) : "";
}

void add_spec(const Cell& cell, Fields& fields) {
  const CellSpec& spec = cell.spec;
  fields.emplace_back("operation", to_string(spec.operation));
  fields.emplace_back("algorithm", cell.algorithm);
  fields.emplace_back("algorithm_asked", spec.algorithm);
  fields.emplace_back("backend", cell.backend);
  fields.emplace_back("backend_asked", spec.backend);
  fields.emplace_back("device", device_text(cell));
  fields.emplace_back("dtype", col::to_string(spec.dtype));
  fields.emplace_back("op", is_reduction(spec.operation) ? col::to_string(spec.op) : "");
  std::string root;
  if (is_rooted(spec.operation)) root = spec.root == kRotatingRoot ? "rotate" : std::to_string(spec.root);
  fields.emplace_back("root", root);
  fields.emplace_back("ranks", std::to_string(spec.ranks));
  fields.emplace_back("bytes", std::to_string(spec.bytes));
  fields.emplace_back("place", !has_in_place(spec.operation) ? "" : spec.in_place ? "in" : "out");
  fields.emplace_back("cadence", to_string(spec.cadence));
  fields.emplace_back("cache", to_string(spec.cache));
  fields.emplace_back("groups", spec.groups);
  fields.emplace_back("pair", spec.pair ? fmt::format("{}-{}", spec.pair->first, spec.pair->second) : "");
}

void add_statistics(const Cell& cell, Fields& fields) {
  const CellStatistics stats = statistics_of(cell);
  const bool any = stats.n > 0;
  const auto time = [&](double seconds) { return any ? nanoseconds(seconds) : ""; };
  fields.emplace_back("n", std::to_string(stats.n));
  fields.emplace_back("t50_ns", time(stats.median));
  fields.emplace_back("ci_low_ns", stats.has_interval() ? time(stats.low) : "");
  fields.emplace_back("ci_high_ns", time(stats.high));
  fields.emplace_back("min_ns", time(stats.min));
  fields.emplace_back("p95_ns", time(stats.p95));
  fields.emplace_back("p99_ns", nanoseconds(stats.p99));
  fields.emplace_back("max_ns", time(stats.max));
  fields.emplace_back("mad_ns", time(stats.mad));
  fields.emplace_back("skew_ns", time(stats.skew));
  fields.emplace_back("device_t50_ns", nanoseconds(stats.device_median));
  fields.emplace_back("outliers", any ? std::to_string(stats.outliers) : "");
  fields.emplace_back("autocorrelation", any ? decimal(stats.autocorrelation, 3) : "");
  fields.emplace_back("launches", std::to_string(cell.launches.size()));
  fields.emplace_back("launch_spread_percent", any ? percent(stats.launch_spread) : "");
  const int size = group_size_of(cell.spec);
  const bool rate = any && cell.invalid.empty() && stats.median > 0 && cell.spec.bytes > 0;
  fields.emplace_back("algbw_bytes_per_s", rate ? decimal(algorithm_bandwidth(cell.spec, stats.median), 0) : "");
  fields.emplace_back("busbw_bytes_per_s",
                      rate && size > 1 ? decimal(bus_bandwidth(cell.spec, size, stats.median), 0) : "");
  fields.emplace_back("bound_ns", cell.bound.seconds > 0 ? nanoseconds(cell.bound.seconds) : "");
  fields.emplace_back("bound_percent", percent(bound_fraction(cell, stats)));
  fields.emplace_back("model_ns", nanoseconds(cell.model_seconds));
  fields.emplace_back("model_percent", percent(model_fraction(cell, stats)));
}

Fields fields_of(const Cell& cell) {
  Fields fields;
  add_spec(cell, fields);
  add_statistics(cell, fields);
  fields.emplace_back("check", cell.check.mode);
  fields.emplace_back("checked", std::to_string(cell.check.elements));
  fields.emplace_back("wrong", std::to_string(cell.check.wrong));
  fields.emplace_back("stop", cell.stop);
  fields.emplace_back("invalid", cell.invalid);
  fields.emplace_back("note", cell.note);
  return fields;
}

}  // namespace

std::string csv_results(const Results& results) {
  std::string text;
  const auto add_line = [&](const Fields& fields, bool names) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) text += ',';
      text += quoted(names ? fields[i].first : std::string_view(fields[i].second));
    }
    text += "\r\n";
  };
  add_line(fields_of(Cell()), true);
  for (const Cell& cell : results.cells) add_line(fields_of(cell), false);
  return text;
}

}  // namespace col::colbench
