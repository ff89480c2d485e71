#include "colbench/suite/ps_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "colbench/report/values.hpp"
#include "colbench/suite/ps_plan.hpp"
#include "colbench/suite/ps_shares.hpp"
#include "common/exit_codes.hpp"
#include "common/table.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

struct Row {
  const Cell* cell = nullptr;
  const PsMethod* method = nullptr;
  CellStatistics statistics = {};
  bool good() const { return statistics.n > 0 && cell->invalid.empty(); }
};

std::vector<Row> rows_of(const Results& results, int ranks) {
  std::vector<Row> rows;
  for (const Cell& cell : results.cells) {
    const PsMethod* method = ps_method_of(cell.spec);
    if (cell.spec.ranks == ranks && method != nullptr) rows.push_back({&cell, method, statistics_of(cell)});
  }
  // By size, then as the methods are listed: cells may have been measured in any order.
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.cell->spec.bytes, a.method) < std::pair(b.cell->spec.bytes, b.method);
  });
  return rows;
}

std::string half_width(const CellStatistics& statistics) {
  return statistics.has_interval() ? percent_text(statistics.half_width()) + " %" : std::string("-");
}

std::string times_text(double ratio) {
  return fmt::format("{:.{}f}x", ratio, ratio < 9.995 ? 2 : ratio < 99.95 ? 1 : 0);
}

// How many times the reference's time a row takes; "about 1" where the intervals of the two overlap.
std::string ratio_text(const Row& row, const Row* reference) {
  if (reference == nullptr || !reference->good() || reference->statistics.median <= 0) return "-";
  if (&row == reference) return "1";
  const CellStatistics &a = row.statistics, &b = reference->statistics;
  const bool apart = a.low > b.high || b.low > a.high;
  return fmt::format("{}{}", apart ? "" : "~", times_text(a.median / b.median));
}

std::string title(const Results& results, int ranks) {
  std::string text = tools::counted(static_cast<std::size_t>(ranks), "rank");
  if (ranks == 1) return text + ": no peers; the store copies all the same, a collective is one copy";
  const int cpus = results.run.cpus;
  if (cpus > 0 && ranks > cpus) {
    text +=
        fmt::format(", oversubscribed: they take turns on {}", tools::counted(static_cast<std::size_t>(cpus), "core"));
  }
  return text;
}

// "store (emulated) takes 3.20x (64M) to 41.0x (1K) the time of col over shm".
std::string span_line(const std::vector<Row>& rows, const std::map<std::size_t, const Row*>& references,
                      const PsMethod& method) {
  const Row *least = nullptr, *most = nullptr;
  double low = 0, high = 0;
  for (const Row& row : rows) {
    const auto reference = references.find(row.cell->spec.bytes);
    if (row.method != &method || !row.good() || reference == references.end()) continue;
    const double ratio = row.statistics.median / reference->second->statistics.median;
    if (least == nullptr || ratio < low) least = &row, low = ratio;
    if (most == nullptr || ratio > high) most = &row, high = ratio;
  }
  if (least == nullptr) return {};
  if (least == most) {
    return fmt::format("{} takes {} the time of {}\n", method.name, times_text(low),
                       ps_methods()[kReferenceMethod].name);
  }
  return fmt::format("{} takes {} ({}) to {} ({}) the time of {}\n", method.name, times_text(low),
                     size_text(least->cell->spec.bytes), times_text(high), size_text(most->cell->spec.bytes),
                     ps_methods()[kReferenceMethod].name);
}

}  // namespace

std::string ps_table(const Results& results, int ranks, const Machine& machine, tools::Style style) {
  const std::vector<Row> rows = rows_of(results, ranks);
  std::map<const PsMethod*, double> smallest;
  std::map<std::size_t, const Row*> references;
  for (const Row& row : rows) {
    if (!row.good()) continue;
    smallest.emplace(row.method, row.statistics.median);  // rows are by size: the first one is the smallest
    if (row.method == &ps_methods()[kReferenceMethod]) references.emplace(row.cell->spec.bytes, &row);
  }

  std::vector<std::vector<tools::TextCell>> table = {
      {{"size"}, {"method"}, {"algo"}, {"time"}, {"±"}, {"of col's"}, {"latency %"}, {"copies %"}, {"bytes %"}}};
  if (!style.utf8) table[0][4].text = "+-";
  // With one size nobody can say what of a time is latency.
  const bool several_sizes = !rows.empty() && rows.front().cell->spec.bytes != rows.back().cell->spec.bytes;
  if (!several_sizes) table[0].resize(6);
  std::size_t last_size = 0;
  for (const Row& row : rows) {
    const std::size_t bytes = row.cell->spec.bytes;
    const bool first = table.size() == 1 || bytes != last_size;
    last_size = bytes;
    std::vector<tools::TextCell> line = {{first ? size_text(bytes) : ""}, {std::string(row.method->name)}};
    const std::string ran = tools::one_line(row.cell->algorithm, !style.utf8);
    const bool is_plan = row.method->operation != Operation::store && ranks > 1 && !ran.empty();
    line.push_back({is_plan ? ran : "-"});
    if (row.good()) {
      const double time = row.statistics.median;
      const auto reference = references.find(bytes);
      line.push_back({time_text(time)});
      line.push_back({half_width(row.statistics)});
      line.push_back({ratio_text(row, reference == references.end() ? nullptr : reference->second)});
      if (several_sizes) {
        const Shares shares = shares_of(time, smallest.at(row.method), copied_bytes(*row.cell),
                                        copy_bandwidth(machine, 2 * bytes, ranks));
        line.push_back({percent_text(shares.latency / time)});
        line.push_back({shares.copies ? percent_text(*shares.copies / time) : "-"});
        line.push_back({percent_text(shares.bytes / time)});
      }
    } else {
      line.push_back({row.cell->invalid.empty() ? "not measured" : "invalid", tools::Tone::attention});  // why: below
    }
    table.push_back(std::move(line));
  }
  std::string text = title(results, ranks) + "\n" + tools::render_table(table, style);
  for (const PsMethod& method : ps_methods()) {
    if (&method != &ps_methods()[kReferenceMethod]) text += span_line(rows, references, method);
  }
  return text;
}

std::string ps_legend() {
  return "time: median, slowest rank; of col's: that time over col's own allreduce over shared memory, ~ where the "
         "two\n"
         "intervals overlap. latency: the method's time at its smallest size; copies: what it copies within ranks, at "
         "the\n"
         "copy bandwidth that this machine has shown; bytes: the rest, moving bytes, reducing and waiting.\n"
         "store (emulated): an object store and remote calls of ours over Unix sockets, as programs without a "
         "collective\n"
         "library put an allreduce together. It is not Ray: no Python, no scheduler, no network.\n";
}

void add_results(Results& all, const Results& one) {
  if (all.cells.empty()) {
    all = one;
    return;
  }
  all.cells.insert(all.cells.end(), one.cells.begin(), one.cells.end());
  for (const std::string& warning : one.warnings) {
    if (std::find(all.warnings.begin(), all.warnings.end(), warning) == all.warnings.end())
      all.warnings.push_back(warning);
  }
  if (one.run.ranks >= all.run.ranks) {
    all.run.ranks = one.run.ranks;
    if (!one.machine.levels.empty()) all.machine = one.machine;
  }
  all.run.seconds += one.run.seconds;
  if (all.ended_early.empty()) all.ended_early = one.ended_early;
  if (all.exit_code == tools::exit_code::kSuccess) all.exit_code = one.exit_code;
}

}  // namespace col::colbench
