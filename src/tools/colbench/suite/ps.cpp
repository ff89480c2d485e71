#include "colbench/suite/ps.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "colbench/commands/options.hpp"
#include "colbench/machine/model.hpp"
#include "colbench/report/values.hpp"
#include "common/exit_codes.hpp"
#include "common/option_values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr std::array kMethods = {
    PsMethod{"central server", "shm", "ps_central"},
    PsMethod{"sharded server", "shm", "ps_sharded"},
    PsMethod{"col over shm", "shm", "auto", false},
    PsMethod{"col over gloo", "gloo", "auto"},
};
static_assert(kMethods[kReferenceMethod].backend == "shm" && kMethods[kReferenceMethod].algorithm == "auto");

std::size_t copied_elements(const Plan& plan) {
  std::size_t copied = 0;
  Round round;
  for (std::size_t number = 0; number < plan.rounds; ++number) {
    round.clear();
    plan.round(number, round);
    for (const Step& step : round.steps()) {
      const bool copies = step.kind == Step::Kind::copy || (step.kind == Step::Kind::convert && step.to != step.left);
      copied += copies ? step.left.count : 0;
    }
  }
  return copied;
}

struct MethodRow {
  const Cell* cell = nullptr;
  const PsMethod* method = nullptr;
  CellStatistics statistics = {};
  bool good() const { return statistics.n > 0 && cell->invalid.empty(); }
};

std::vector<MethodRow> rows_of(const Results& results, int ranks) {
  std::vector<MethodRow> rows;
  for (const Cell& cell : results.cells) {
    const PsMethod* method = ps_method_of(cell.spec);
    if (cell.spec.ranks == ranks && method != nullptr) rows.push_back({&cell, method, statistics_of(cell)});
  }
  // By size, then as the methods are listed: cells may have been measured in any order.
  std::stable_sort(rows.begin(), rows.end(), [](const MethodRow& a, const MethodRow& b) {
    return std::pair(a.cell->spec.bytes, a.method) < std::pair(b.cell->spec.bytes, b.method);
  });
  return rows;
}

std::string half_width(const CellStatistics& statistics) {
  return statistics.has_interval() ? percent_text(statistics.half_width()) + " %" : std::string("-");
}

std::string times_text(double ratio) {
  return three_digits(ratio) + "x";
}

// How many times the reference's time a row takes; "about 1" where the intervals of the two overlap.
std::string ratio_text(const MethodRow& row, const MethodRow* reference) {
  if (reference == nullptr || !reference->good() || reference->statistics.median <= 0) return "-";
  if (&row == reference) return "1";
  const CellStatistics &a = row.statistics, &b = reference->statistics;
  const bool apart = a.low > b.high || b.low > a.high;
  return fmt::format("{}{}", apart ? "" : "~", times_text(a.median / b.median));
}

std::string title(const Results& results, int ranks) {
  std::string text = tools::counted(static_cast<std::size_t>(ranks), "rank");
  if (ranks == 1) return text + ": no peers; a collective is one copy";
  const int cpus = results.run.cpus;
  if (cpus > 0 && ranks > cpus) {
    text +=
        fmt::format(", oversubscribed: they take turns on {}", tools::counted(static_cast<std::size_t>(cpus), "core"));
  }
  return text;
}

// "central server takes 3.20x (64M) to 41.0x (1K) the time of col over shm".
std::string span_line(const std::vector<MethodRow>& rows, const std::map<std::size_t, const MethodRow*>& references,
                      const PsMethod& method) {
  const MethodRow *least = nullptr, *most = nullptr;
  double low = 0, high = 0;
  for (const MethodRow& row : rows) {
    const auto reference = references.find(row.cell->spec.bytes);
    if (row.method != &method || !row.good() || reference == references.end()) continue;
    const double ratio = row.statistics.median / reference->second->statistics.median;
    if (least == nullptr || ratio < low) least = &row, low = ratio;
    if (most == nullptr || ratio > high) most = &row, high = ratio;
  }
  if (least == nullptr) return {};
  if (least == most) {
    return fmt::format("{} takes {} the time of {}", method.name, times_text(low), ps_methods()[kReferenceMethod].name);
  }
  return fmt::format("{} takes {} ({}) to {} ({}) the time of {}", method.name, times_text(low),
                     size_text(least->cell->spec.bytes), times_text(high), size_text(most->cell->spec.bytes),
                     ps_methods()[kReferenceMethod].name);
}

}  // namespace

std::span<const PsMethod> ps_methods() {
  return kMethods;
}

const PsMethod* ps_method_of(const CellSpec& spec) {
  const auto found = std::find_if(kMethods.begin(), kMethods.end(), [&spec](const PsMethod& method) {
    return spec.operation == Operation::allreduce && spec.backend == method.backend &&
           spec.algorithm == method.algorithm;
  });
  return found == kMethods.end() ? nullptr : &*found;
}

std::vector<CellSpec> ps_cells(int ranks, std::span<const std::size_t> sizes, bool gloo) {
  std::vector<CellSpec> cells;
  for (const std::size_t bytes : sizes) {
    for (const PsMethod& method : kMethods) {
      if ((ranks == 1 && method.needs_peers) || (!gloo && method.backend == "gloo")) continue;
      CellSpec spec{.operation = Operation::allreduce,
                    .backend = std::string(method.backend),
                    .algorithm = std::string(method.algorithm),
                    .ranks = ranks};
      spec.bytes = std::max<std::size_t>(1, bytes / size_of(spec.dtype)) * size_of(spec.dtype);
      if (std::find(cells.begin(), cells.end(), spec) == cells.end()) cells.push_back(std::move(spec));
    }
  }
  return cells;
}

std::size_t memory_of(const CellSpec& spec) {
  return 2 * static_cast<std::size_t>(spec.ranks) * spec.bytes;
}

std::vector<int> take_rank_list(std::vector<std::string>& arguments, std::vector<int> fallback) {
  const auto given = take_ranks(arguments);
  if (given.empty()) return fallback;
  if (given.size() > 1) throw UsageError("-n was given twice; give it once");
  const std::string& text = given.front().second;
  const auto ranks = tools::parse_ranks(text);
  if (!ranks)
    throw UsageError(
        fmt::format("-n takes numbers of ranks from 1 to {}, as 1,2,4 or 1-4, not '{}'", tools::kMaxRanks, text));
  return *ranks;
}

std::optional<std::size_t> copied_bytes(const Cell& cell) {
  const CellSpec& spec = cell.spec;
  if (spec.ranks == 1) return spec.bytes;
  const std::string& name = cell.algorithm;
  if (name.empty()) return std::nullopt;
  try {
    const AlgorithmSpec algorithm = AlgorithmSpec::parse(name);
    const Algorithm* known = find_algorithm(Collective::allreduce, algorithm.name);
    if (known == nullptr) return std::nullopt;
    const PlanProblem problem(problem_of(spec, algorithm));
    if (known->refuse(problem.request(0))) return std::nullopt;
    const PlanOfRank plans = plans_of(*known, problem);
    std::size_t copied = 0;
    for (int rank = 0; rank < spec.ranks; ++rank) copied += copied_elements(plans(rank));
    return copied * size_of(spec.dtype);
  } catch (const Error&) {
    return std::nullopt;  // not the name of a plan
  }
}

double copy_bandwidth(const Machine& machine, std::size_t bytes, int ranks) {
  if (machine.levels.empty()) return 0;
  const auto level = std::find_if(machine.levels.begin(), machine.levels.end(),
                                  [bytes](const Machine::Level& l) { return l.bytes >= bytes; });
  const Machine::Level& found = level != machine.levels.end() ? *level : machine.levels.back();
  return ranks == 1 ? found.alone : found.together;
}

Shares shares_of(double seconds, double smallest_seconds, std::optional<std::size_t> copied, double bandwidth) {
  Shares shares;
  shares.latency = std::min(seconds, smallest_seconds);
  double left = seconds - shares.latency;
  if (copied && bandwidth > 0) {
    // Every byte that is copied is read and written.
    shares.copies = std::min(left, 2 * static_cast<double>(*copied) / bandwidth);
    left -= *shares.copies;
  }
  shares.bytes = left;
  return shares;
}

tools::NotedTable ps_table(const Results& results, int ranks, const Machine& machine, bool utf8) {
  const std::vector<MethodRow> rows = rows_of(results, ranks);
  std::map<const PsMethod*, double> smallest;
  std::map<std::size_t, const MethodRow*> references;
  for (const MethodRow& row : rows) {
    if (!row.good()) continue;
    smallest.emplace(row.method, row.statistics.median);  // rows are by size: the first one is the smallest
    if (row.method == &ps_methods()[kReferenceMethod]) references.emplace(row.cell->spec.bytes, &row);
  }

  tools::NotedTable result{.title = title(results, ranks)};
  tools::TextRows& table = result.rows;
  table = {{{"size"},
            {"method"},
            {.text = "algo", .goes = 3},
            {"time"},
            {utf8 ? "±" : "+-"},
            {"of col's"},
            {.text = "latency %", .goes = 1},
            {.text = "copies %", .goes = 1},
            {.text = "bytes %", .goes = 1}}};
  // With one size nobody can say what of a time is latency.
  const bool several_sizes = !rows.empty() && rows.front().cell->spec.bytes != rows.back().cell->spec.bytes;
  if (!several_sizes) table[0].resize(6);
  std::size_t last_size = 0;
  for (const MethodRow& row : rows) {
    const std::size_t bytes = row.cell->spec.bytes;
    const bool first = table.size() == 1 || bytes != last_size;
    last_size = bytes;
    std::vector<tools::TextCell> line = {{first ? size_text(bytes) : ""}, {std::string(row.method->name)}};
    const std::string ran = tools::one_line(row.cell->algorithm, !utf8);
    const bool is_plan = ranks > 1 && !ran.empty();
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
  for (const PsMethod& method : ps_methods()) {
    if (&method == &ps_methods()[kReferenceMethod]) continue;
    if (std::string line = span_line(rows, references, method); !line.empty()) result.notes.push_back(std::move(line));
  }
  return result;
}

std::vector<std::string> ps_legend() {
  return {
      "The servers are an emulated store, not Ray: plans of col that move bytes as a parameter server does, in the "
      "memory that the ranks share. docs/ray-spacy.md measures Ray itself.",
      "time: median, slowest rank; of col's: that time over col's own allreduce over shared memory, ~ where the two "
      "intervals overlap.",
      "latency: the method's time at its smallest size; copies: what it copies within ranks, at the copy bandwidth "
      "that this machine has shown; bytes: the rest, moving bytes, reducing and waiting."};
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
