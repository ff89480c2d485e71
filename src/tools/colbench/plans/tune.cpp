// colbench tune: which algorithm is the fastest at which size, here, as a selection table.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/plans/choice.hpp"
#include "colbench/plans/tune_report.hpp"
#include "common/exit_codes.hpp"
#include "common/option_values.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"

namespace col::colbench {
namespace {

constexpr const char* kTuneUsage = "Usage: colbench tune [COLL,…] [-n LIST] [--sizes 64:16M:x8] [-o FILE]";
constexpr const char* kTuneFooter =
    R"(All collectives unless some are named; -n takes several numbers of ranks, as 2,4,7-8. An algorithm takes the place
of another one, or of what the built-in table has, only where their intervals do not overlap. Where an algorithm of
the backend's own is the best, plans are ranked without it, too, for calls that it does not serve. Use the table with
COL_SELECTION=my_selection.json (docs/selection.md); what it has no rule for is decided by the one built in. Unless they
are given: --sizes 64:16M:x8, --algo all, --max-time 300ms.

Example:
  colbench tune allreduce,allgather -n 4,8 --backend shm -o my_selection.json)";
constexpr const char* kDefaultSizes = "64:16M:x8";
constexpr Duration kDefaultMaxTime = std::chrono::milliseconds(300);
constexpr double kPrecision = 1.25;
constexpr int kRefinements = 4;
constexpr std::size_t kMostLeftOut = 10;  // that are named

struct Job {
  Method method;
  std::vector<CellSpec> cells;
};

std::vector<Operation> operations_of(const std::vector<std::string>& words) {
  std::vector<Operation> operations = parse_operations(words.empty() ? "all" : words.front());
  std::erase_if(operations, [](Operation operation) { return !collective_of(operation); });
  if (operations.empty()) throw UsageError("{} has no algorithms to choose from", words.front());
  return operations;
}

void check(const Request& request) {
  if (!request.groups.empty()) throw UsageError("tune measures one group at a time; leave out --groups");
  if (request.in_place.size() != 1 || request.cadences.size() != 1 || request.roots.size() != 1)
    throw UsageError("tune measures in one way at a time; give one value to --place, --cadence and --root");
  if (std::find(request.algorithms.begin(), request.algorithms.end(), "auto") != request.algorithms.end())
    throw UsageError("auto is what tune is to improve; give --algo all, or names");
}

// "-n 2,4" is two jobs, one for each number of ranks. Nothing when a text (--help) was printed instead.
std::optional<Job> job_of(const std::vector<std::string>& arguments, std::size_t number, std::size_t& jobs,
                          std::string& file) {
  CommandLine line("colbench tune", kTuneUsage, kTuneFooter);
  line.add_cells(CommandLine::Letter::output);
  line.add_method([&](const std::string& option, const std::string& text) {
    const auto ranks = tools::parse_ranks(text);
    if (!ranks || ranks->front() < 2)
      throw UsageError("{} should be numbers of ranks, as 2,4,7-8, from 2 to {}, not '{}'", option, tools::kMaxRanks,
                       text);
    jobs = ranks->size();
    return ranks->at(number);
  });
  line.add_option("Output", "-o,--output", file, "FILE", "where the table goes; default: stdout");
  line.add({"Output", "--no-progress", "", "no progress line, even on a terminal"});
  if (!line.parse(arguments, 1)) return std::nullopt;
  Request& request = line.request();
  request.operations = operations_of(line.words());
  if (request.sizes.empty()) request.sizes = parse_sizes(kDefaultSizes);
  if (!line.given("--algo")) request.algorithms = {"all"};
  if (!line.given("--max-time")) request.method.max_time = kDefaultMaxTime;
  check(request);
  return Job{request.method, with_tuned_variants(cells_of(request))};
}

// What was found over all numbers of ranks.
struct Found {
  std::vector<TunedSeries> series = {};
  RunFacts run = {};
  std::vector<std::string> warnings = {}, left_out = {};
};

std::vector<TunedRule> all_rules(std::vector<TunedSeries>& series) {
  std::stable_sort(series.begin(), series.end(), [](const TunedSeries& a, const TunedSeries& b) {
    return std::tie(a.cell.operation, a.backend, a.cell.ranks) < std::tie(b.cell.operation, b.backend, b.cell.ranks);
  });
  std::vector<TunedRule> rules;
  for (const TunedSeries& one : series) {
    for (TunedRule& rule : rules_of(one)) rules.push_back(std::move(rule));
  }
  return merged_rules(std::move(rules));
}

// Quoted where a shell would need it.
std::string word_text(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:=/+%";
  return !word.empty() && word.find_first_not_of(kPlain) == std::string::npos ? word : tools::shell_quoted(word);
}

SelectionEvidence evidence_of(const Found& found, const std::vector<std::string>& arguments) {
  SelectionEvidence evidence;
  evidence.machine = fmt::format("{}, {}, {}", found.run.host, found.run.cpu,
                                 tools::counted(static_cast<std::size_t>(found.run.cpus), "core"));
  for (const std::string& warning : found.warnings) evidence.machine += fmt::format("; {}", warning);
  evidence.date = found.run.started.substr(0, 10);
  evidence.command = "colbench tune";
  for (const std::string& argument : arguments) evidence.command += " " + word_text(argument);
  return evidence;
}

std::string summary(const Found& found) {
  std::string text;
  for (const std::string& warning : found.warnings) text += fmt::format("# {}\n", tools::one_line(warning));
  const std::size_t shown = std::min(found.left_out.size(), kMostLeftOut);
  for (std::size_t i = 0; i < shown; ++i) text += fmt::format("# left out: {}\n", tools::one_line(found.left_out[i]));
  if (shown < found.left_out.size())
    text += fmt::format("# left out: {} more\n", tools::counted(found.left_out.size() - shown, "row"));
  for (const TunedSeries& series : found.series) text += series_text(series);
  std::map<std::string, Chooser> choosers;
  std::vector<std::string> changes;
  for (const TunedSeries& series : found.series) {
    const Chooser& chooser = choosers.try_emplace(series.backend, series.backend, ChoiceSettings{}).first->second;
    const OtherChoice built_in = [&](const CellSpec& cell) -> std::optional<std::string> {
      const auto choice = chooser.choose_by(SelectionTable::built_in(), cell);
      return choice ? std::optional(choice->algorithm.text()) : std::nullopt;
    };
    for (std::string& change : changes_of(series, built_in)) changes.push_back(std::move(change));
  }
  text += changes.empty() ? "\nagainst the built-in table, nothing would change\n"
                          : "\nagainst the built-in table would change:\n";
  for (const std::string& change : changes) text += fmt::format("  {}\n", change);
  return text;
}

}  // namespace

int run_tune(const Invocation& invocation) {
  std::vector<Job> jobs;
  std::string file;
  for (std::size_t i = 0, count = 1; i < count; ++i) {
    std::optional<Job> job = job_of(invocation.arguments, i, count, file);
    if (!job) return tools::exit_code::kSuccess;
    jobs.push_back(std::move(*job));
  }
  const bool to_stdout = file.empty() || file == "-";
  if (!to_stdout) check_outputs({.json = file});

  Found found;
  int exit_code = tools::exit_code::kSuccess;
  for (const Job& job : jobs) {
    TuneResult tuned = tune(invocation.measure, job.method, job.cells, kPrecision, kRefinements);
    if (!tuned.ended_early.empty()) {
      print_error(fmt::format("colbench: ended early, and wrote no table: {}\n", tools::one_line(tuned.ended_early)));
      return tuned.exit_code != 0 ? tuned.exit_code : tools::exit_code::kRankDied;
    }
    if (exit_code == tools::exit_code::kSuccess) exit_code = tuned.exit_code;
    if (found.run.host.empty()) found.run = tuned.run;
    found.warnings.insert(found.warnings.end(), tuned.warnings.begin(), tuned.warnings.end());
    found.left_out.insert(found.left_out.end(), tuned.left_out.begin(), tuned.left_out.end());
    found.series.insert(found.series.end(), tuned.series.begin(), tuned.series.end());
  }
  const std::vector<TunedRule> rules = all_rules(found.series);
  if (rules.empty()) throw UsageError("nothing could be measured, so there is nothing to write a table of");
  const std::string table = selection_text(rules, evidence_of(found, invocation.arguments));
  (void)SelectionTable::parse(table, to_stdout ? "stdout" : file);  // what cannot be read must not be written
  if (to_stdout) {
    print(table);
    print_error(summary(found));
  } else {
    tools::write_file(file, table);
    print(summary(found) +
          fmt::format("\n{} has {}; use it with COL_SELECTION={}\n", file, tools::counted(rules.size(), "rule"), file));
  }
  return exit_code;
}

}  // namespace col::colbench
