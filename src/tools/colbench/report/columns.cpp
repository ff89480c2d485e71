#include "colbench/report/columns.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "colbench/report/summary.hpp"
#include "colbench/report/values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

using Kind = Column::Kind;
using Name = Column::Name;

bool has_samples(const Row& row) {
  return row.statistics.n > 0;
}

template <auto kMember>
std::optional<double> statistic(const Row& row) {
  return has_samples(row) ? std::optional<double>(row.statistics.*kMember) : std::nullopt;
}

std::optional<double> some(std::size_t count) {
  return static_cast<double>(count);
}

// Of an invalid row no rate is said: it would be taken for a record.
bool has_rate(const Row& row) {
  return has_samples(row) && row.cell.invalid.empty() && row.statistics.median > 0;
}

std::optional<double> algorithm_bandwidth_of(const Row& row) {
  if (!has_rate(row)) return std::nullopt;
  return algorithm_bandwidth(row.cell.spec, row.statistics.median);
}

std::optional<double> bus_bandwidth_of(const Row& row) {
  const int size = group_size_of(row.cell.spec);
  if (!has_rate(row) || size < 2) return std::nullopt;
  return bus_bandwidth(row.cell.spec, size, row.statistics.median);
}

std::string pair_of(const Row& row) {
  const auto& pair = row.cell.spec.pair;
  return pair ? fmt::format("{}-{}", pair->first, pair->second) : "";
}

std::string with_sign(bool there, double fraction) {
  const std::string percent = there ? percent_text(fraction) : "-";
  return percent == "-" ? percent : percent + "%";
}

std::string interval_of(const Row& row) {
  const bool there = row.statistics.has_interval();
  return with_sign(there, there ? row.statistics.half_width() : 0);
}

std::string spread_of(const Row& row) {
  return with_sign(launch_medians(row.cell).size() > 1, row.statistics.launch_spread);
}

std::string autocorrelation_of(const Row& row) {
  if (row.statistics.n < 2) return "-";
  return fmt::format("{:.2f}", std::round(row.statistics.autocorrelation * 100) / 100 + 0.0);
}

std::string wrong_of(const Row& row) {
  const Check& check = row.cell.check;
  return check.mode == "off" || check.elements == 0 ? "-" : std::to_string(check.wrong);
}

// Without a decimal when it is whole.
std::string decimal(double value, int digits) {
  if (!std::isfinite(value)) return "";
  return without_zeros(fmt::format("{:.{}f}", value, digits));
}

// ---- The table: in the order of CSV ---------------------------------------------------------------------------------

std::vector<Column> names() {
  return {
      {"coll", "operation", Facet::operation, "operation"},
      {"algo", "algorithm that ran; * chosen by the library", Facet::algorithm, "algorithm",
       [](const Row& row) { return row.cell.algorithm; }},
      {"algorithm_asked", [](const Row& row) { return row.cell.spec.algorithm; }},
      {"be", "backend that ran", Facet::backend, "backend", [](const Row& row) { return row.cell.backend; }},
      {"backend_asked", [](const Row& row) { return row.cell.spec.backend; }},
      {"dev", "where the buffers are", Facet::device, "device"},
      {"dt", "element type", Facet::dtype, "dtype",
       [](const Row& row) { return std::string(col::to_string(row.cell.spec.dtype)); }},
      {"op", "reduction", Facet::op, "op"},
      {Name("root", "np"), "root rank, or rotate: another one each time", Facet::root, "root"},
      {"np", "ranks", Facet::ranks, "ranks"},
      {"size", "bytes of the larger of a rank's two buffers, in powers of 1024", Facet::size, "bytes",
       [](const Row& row) { return std::to_string(row.cell.spec.bytes); }},
      {"place", "in: the result replaces the input; out: two buffers", Facet::place, "place"},
      {"cad", "isol: each operation starts at a common time; stream: one follows the other without waiting",
       Facet::cadence, "cadence", [](const Row& row) { return std::string(to_string(row.cell.spec.cadence)); }},
      {"cache", "hot: the same buffers; cold: flushed before; rotate: buffers in turn, larger than the caches",
       Facet::cache, "cache"},
      {"groups", "groups that work at the same time", Facet::groups, "groups"},
      {"pair", "the two ranks that talk", Facet::pair, "pair", pair_of},
      {"order", "in which a reduction combines: any; rank; tree, of one contribution of each rank", Facet::order,
       "order"},
  };
}

std::vector<Column> times() {
  using Stats = CellStatistics;
  return {
      {"n", "samples; one is one operation (stream: the mean of a window of them), the slowest rank's time", 6,
       Kind::count, [](const Row& row) { return some(row.statistics.n); }, "n", "n",
       [](const Row& row) { return has_samples(row) ? std::to_string(row.statistics.n) : "-"; }},
      {"t50", "median of the launches, of which each has the median of its samples", kNeverGoes, Kind::time,
       statistic<&Stats::median>, "t50_ns", "p50"},
      {"±CI", "half of t50's 95 % interval, over t50: what other launches would give; a dash below 6 launches", 23,
       interval_of},
      {"", "", 0, Kind::time,
       [](const Row& row) { return row.statistics.has_interval() ? std::optional(row.statistics.low) : std::nullopt; },
       "ci_low_ns", "ci_lo"},
      {"", "", 0, Kind::time, statistic<&Stats::high>, "ci_high_ns", "ci_hi"},
      {"tmin", "fastest sample", 2, Kind::time, statistic<&Stats::min>, "min_ns", Name("min", "p99")},
      {"p95", "95 % of the samples took no longer", 4, Kind::time, statistic<&Stats::p95>, "p95_ns", "p95"},
      {"p99", "99 % of the samples took no longer; a dash below 100 samples", 3, Kind::time,
       [](const Row& row) { return row.statistics.p99; }, "p99_ns", "p99"},
      {"max", "slowest sample", 5, Kind::time, statistic<&Stats::max>, "max_ns", "max"},
      {"mad", "median absolute deviation", kPageOnly, Kind::time, statistic<&Stats::mad>, "mad_ns", "mad"},
      {"skew", "median of how much later than the common start the last rank began", 1, Kind::time,
       statistic<&Stats::skew>, "skew_ns", Name("skew", "autocorr")},
      {Name("tdev", "t50"),
       "median time on the GPU's own clock, between events around the call; t50 is the host's. A dash for messages, "
       "barriers, and data that goes through the host",
       24,
       Kind::time,
       [](const Row& row) { return row.statistics.device_median; },
       "device_t50_ns",
       {"device_p50", "launch_spread"}},
      {"outliers", "samples beyond 1.5 interquartile ranges; they are counted, not dropped", kPageOnly, Kind::count,
       statistic<&Stats::outliers>, "outliers", "outliers"},
      {"autocorr", "how much a sample tells of the next one: -1 to 1", kPageOnly, Kind::number,
       statistic<&Stats::autocorrelation>, "autocorrelation", "autocorr", autocorrelation_of},
      {"launches", "launches that took samples", kPageOnly, Kind::count,
       [](const Row& row) { return some(row.cell.launches.size()); }, "launches"},
      {Name("spread", "±CI"), "of the medians of launches, the width of the middle half, over t50", 19, Kind::part,
       statistic<&Stats::launch_spread>, "launch_spread_percent", "launch_spread", spread_of},
  };
}

std::vector<Column> verdicts() {
  return {
      {"algbw", "algorithm bandwidth in GB/s (1e9 bytes): size over t50", 7, Kind::rate, algorithm_bandwidth_of,
       "algbw_bytes_per_s", "algbw"},
      {"busbw", "bus bandwidth in GB/s: algbw times nccl-tests' factor; a dash for groups of one", 22, Kind::rate,
       bus_bandwidth_of, "busbw_bytes_per_s", "busbw"},
      {"", "", 0, Kind::time,
       [](const Row& row) { return row.cell.bound.seconds > 0 ? std::optional(row.cell.bound.seconds) : std::nullopt; },
       "bound_ns"},
      {"%bound", "the least time that this machine allows, in percent of t50: at 100 nothing is left to gain", 21,
       Kind::part, [](const Row& row) { return bound_fraction(row.cell, row.statistics); }, "bound_percent"},
      {"", "", 0, Kind::time, [](const Row& row) { return row.cell.model_seconds; }, "model_ns"},
      {"%model", "the plan's simulated time under fitted parameters, in percent of t50", 8, Kind::part,
       [](const Row& row) { return model_fraction(row.cell, row.statistics); }, "model_percent"},
      {"check", [](const Row& row) { return row.cell.check.mode; }},
      {"checked", [](const Row& row) { return std::to_string(row.cell.check.elements); }},
      {"wrong",
       "wrong elements among those looked at; a dash when none were",
       20,
       Kind::count,
       [](const Row& row) { return some(row.cell.check.wrong); },
       "wrong",
       {},
       wrong_of},
      {"stop", "why sampling ended: interval (within the target), time, count, launches (all were made), ended (early)",
       kPageOnly, [](const Row& row) { return row.cell.stop.empty() ? "-" : tools::one_line(row.cell.stop); }},
      {"stop", [](const Row& row) { return row.cell.stop; }},
      {"invalid", [](const Row& row) { return row.cell.invalid; }},
      {"note", [](const Row& row) { return row.cell.note; }},
  };
}

// ---- Its parts ------------------------------------------------------------------------------------------------------

// The columns with that name, each where it belongs.
std::vector<Column> columns_with(Column::Name Column::*form) {
  std::vector<Column> list, elsewhere;
  for (const auto& part : {names(), times(), verdicts()}) {
    for (const Column& column : part) {
      if (!(column.*form).name.empty()) ((column.*form).after.empty() ? list : elsewhere).push_back(column);
    }
  }
  for (const Column& column : elsewhere) {
    const auto before = [&](const Column& other) { return (other.*form).name == (column.*form).after; };
    list.insert(std::ranges::find_if(list, before) + 1, column);
  }
  return list;
}

// Whether rows differ in it, or would have no name without it.
bool tells(const Results& results, Facet facet) {
  constexpr std::array kName = {Facet::operation, Facet::algorithm, Facet::size};
  return std::ranges::find(kName, facet) != kName.end() || varies(results.cells, facet);
}

std::vector<Column> table_columns(const Results& results) {
  std::vector<Column> columns = columns_with(&Column::table);
  const bool on_gpus =
      std::ranges::any_of(results.cells, [](const Cell& cell) { return cell.spec.device != Devices::cpu; });
  std::erase_if(columns, [&](const Column& column) {
    return column.facet ? !tells(results, *column.facet) : column.table.name == "tdev" && !on_gpus;
  });
  return columns;
}

}  // namespace

std::string Column::in_table(const Row& row) const {
  if (text != nullptr) return text(row);
  if (facet) return value_of(row.cell, *facet);
  const std::optional<double> number = value(row);
  if (!number) return "-";
  if (kind == Kind::time) return time_text(*number);
  if (kind == Kind::rate) return bandwidth_text(*number);
  if (kind == Kind::part) return percent_text(*number);
  return decimal(*number, 0);
}

std::string Column::in_csv(const Row& row) const {
  if (csv_text != nullptr) return csv_text(row);
  if (facet) {
    std::string shown = value_of(row.cell, *facet);
    return shown == "-" ? std::string() : shown;
  }
  const double number = value(row).value_or(std::nan(""));
  if (kind == Kind::time) return decimal(number * 1e9, 1);
  if (kind == Kind::rate) return number > 0 ? decimal(number, 0) : "";
  if (kind == Kind::part) return decimal(number * 100, 2);
  return decimal(number, kind == Kind::number ? 3 : 0);
}

std::vector<Column> terminal_columns(const Results& results, tools::Style style) {
  std::vector<Column> columns = table_columns(results);
  std::erase_if(columns, [](const Column& column) { return column.rank == kPageOnly; });
  for (Column& column : columns) {
    if (!style.utf8 && column.table.name == "±CI") column.table = "+-CI";
  }
  return columns;
}

std::vector<Column> page_columns(const Results& results) {
  std::vector<Column> columns = table_columns(results);
  std::stable_partition(columns.begin(), columns.end(), [](const Column& column) { return column.rank != kPageOnly; });
  return columns;
}

tools::Table table_of(const Results& results, const std::vector<Column>& columns) {
  tools::Table table;
  for (const Column& column : columns)
    table.columns.push_back({.name = std::string(column.table.name),
                             .number = !column.left_aligned(),
                             .goes = static_cast<std::uint8_t>(kNeverGoes - column.rank),
                             .meaning = std::string(column.meaning)});
  for (const Cell& cell : results.cells) {
    const Row row{cell, statistics_of(cell)};
    tools::TextRow& texts = table.rows.emplace_back();
    for (const Column& column : columns) texts.push_back({column.in_table(row)});
  }
  return table;
}

std::vector<Column> csv_columns() {
  return columns_with(&Column::csv);
}

const std::vector<Column>& json_columns() {
  static const std::vector<Column> columns = columns_with(&Column::json);
  return columns;
}

}  // namespace col::colbench
