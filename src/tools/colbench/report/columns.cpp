#include "colbench/report/columns.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "colbench/report/summary.hpp"
#include "colbench/report/values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

std::string time_of(const Row& row, double seconds) {
  return row.statistics.n > 0 ? time_text(seconds) : "-";
}

std::string with_sign(const std::string& percent) {
  return percent == "-" ? percent : percent + "%";
}

std::string interval_of(const Row& row) {
  return row.statistics.has_interval() ? with_sign(percent_text(row.statistics.half_width())) : std::string("-");
}

std::string percent_or_dash(std::optional<double> fraction) {
  return fraction ? percent_text(*fraction) : "-";
}

// Of an invalid row no rate is said: it would be taken for a record.
bool has_rate(const Row& row) {
  return row.statistics.n > 0 && row.cell.invalid.empty();
}

std::string algorithm_bandwidth_of(const Row& row) {
  return has_rate(row) ? bandwidth_text(algorithm_bandwidth(row.cell.spec, row.statistics.median)) : "-";
}

std::string bus_bandwidth_of(const Row& row) {
  const int size = group_size_of(row.cell.spec);
  if (!has_rate(row) || size < 2) return "-";
  return bandwidth_text(bus_bandwidth(row.cell.spec, size, row.statistics.median));
}

std::string wrong_of(const Row& row) {
  const Check& check = row.cell.check;
  return check.mode == "off" || check.elements == 0 ? "-" : std::to_string(check.wrong);
}

std::string meaning_of(Facet facet) {
  switch (facet) {
    case Facet::operation:
      return "operation";
    case Facet::algorithm:
      return "algorithm that ran; * chosen by the library";
    case Facet::backend:
      return "backend that ran";
    case Facet::device:
      return "where the buffers are";
    case Facet::dtype:
      return "element type";
    case Facet::op:
      return "reduction";
    case Facet::ranks:
      return "ranks";
    case Facet::root:
      return "root rank, or rotate: another one each time";
    case Facet::size:
      return "bytes of the larger of a rank's two buffers, in powers of 1024";
    case Facet::place:
      return "in: the result replaces the input; out: two buffers";
    case Facet::cadence:
      return "isol: each operation starts at a common time; stream: one follows the other without waiting";
    case Facet::cache:
      return "hot: the same buffers; cold: flushed before; rotate: buffers in turn, larger than the caches";
    case Facet::groups:
      return "groups that work at the same time";
    case Facet::pair:
      return "the two ranks that talk";
  }
  return "";
}

}  // namespace

std::vector<Column> identity_columns(const Results& results) {
  constexpr std::array kName = {Facet::operation, Facet::algorithm, Facet::size};
  std::vector<Column> columns;
  for (const Facet facet : kFacets) {
    const bool name = std::find(kName.begin(), kName.end(), facet) != kName.end();
    if (!name && !varies(results.cells, facet)) continue;
    columns.push_back({std::string(column_of(facet)), meaning_of(facet), kNeverGoes, nullptr, facet});
  }
  return columns;
}

std::vector<Column> value_columns(const Results& results, tools::Style style) {
  std::vector<Column> columns = {
      {"n", "samples; one is one operation (stream: the mean of a window of them), the slowest rank's time", 6,
       [](const Row& row) { return row.statistics.n > 0 ? std::to_string(row.statistics.n) : "-"; }},
      {"t50", "median of the launches, of which each has the median of its samples", kNeverGoes,
       [](const Row& row) { return time_of(row, row.statistics.median); }},
      {style.utf8 ? "±CI" : "+-CI",
       "half of t50's 95 % interval, over t50: what other launches would give; a dash below 6 launches", 23,
       interval_of},
      {"spread", "of the medians of launches, the width of the middle half, over t50", 19,
       [](const Row& row) {
         return launch_medians(row.cell).size() > 1 ? with_sign(percent_text(row.statistics.launch_spread))
                                                    : std::string("-");
       }},
      {"tmin", "fastest sample", 2, [](const Row& row) { return time_of(row, row.statistics.min); }},
      {"p95", "95 % of the samples took no longer", 4, [](const Row& row) { return time_of(row, row.statistics.p95); }},
      {"p99", "99 % of the samples took no longer; a dash below 100 samples", 3,
       [](const Row& row) { return row.statistics.n > 0 ? time_text(row.statistics.p99) : "-"; }},
      {"max", "slowest sample", 5, [](const Row& row) { return time_of(row, row.statistics.max); }},
      {"skew", "median of how much later than the common start the last rank began", 1,
       [](const Row& row) { return time_of(row, row.statistics.skew); }},
      {"algbw", "algorithm bandwidth in GB/s (1e9 bytes): size over t50", 7, algorithm_bandwidth_of},
      {"busbw", "bus bandwidth in GB/s: algbw times nccl-tests' factor; a dash for groups of one", 22,
       bus_bandwidth_of},
      {"%bound", "the least time that this machine allows, in percent of t50: at 100 nothing is left to gain", 21,
       [](const Row& row) { return percent_or_dash(bound_fraction(row.cell, row.statistics)); }},
      {"%model", "the plan's simulated time under fitted parameters, in percent of t50", 8,
       [](const Row& row) { return percent_or_dash(model_fraction(row.cell, row.statistics)); }},
      {"wrong", "wrong elements among those looked at; a dash when none were", 20, wrong_of},
  };
  const bool on_gpus =
      std::ranges::any_of(results.cells, [](const Cell& cell) { return cell.spec.device != Devices::cpu; });
  if (on_gpus) {
    const auto after = std::ranges::find(columns, "t50", &Column::name) + 1;
    columns.insert(after, {"tdev",
                           "median time on the GPU's own clock, between events around the call; t50 is the "
                           "host's. A dash for messages, barriers, and data that goes through the host",
                           24, [](const Row& row) {
                             const std::optional<double>& median = row.statistics.device_median;
                             return median ? time_text(*median) : std::string("-");
                           }});
  }
  return columns;
}

std::vector<Column> further_columns() {
  return {
      {"mad", "median absolute deviation", 0, [](const Row& row) { return time_of(row, row.statistics.mad); }},
      {"outliers", "samples beyond 1.5 interquartile ranges; they are counted, not dropped", 0,
       [](const Row& row) { return row.statistics.n > 0 ? std::to_string(row.statistics.outliers) : "-"; }},
      {"autocorr", "how much a sample tells of the next one: -1 to 1", 0,
       [](const Row& row) {
         return row.statistics.n > 1
                    ? fmt::format("{:.2f}", std::round(row.statistics.autocorrelation * 100) / 100 + 0.0)
                    : std::string("-");
       }},
      {"launches", "launches that took samples", 0,
       [](const Row& row) { return std::to_string(row.cell.launches.size()); }},
      {"stop", "why sampling ended: interval (within the target), time, count, launches (all were made), ended (early)",
       0, [](const Row& row) { return row.cell.stop.empty() ? "-" : tools::one_line(row.cell.stop); }},
  };
}

}  // namespace col::colbench
