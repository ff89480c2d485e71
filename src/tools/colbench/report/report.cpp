#include "colbench/report/report.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/columns.hpp"
#include "colbench/report/json.hpp"
#include "colbench/report/summary.hpp"
#include "colbench/report/values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

using tools::Style;
using tools::Tone;

// "✘ [1]" beside every row that has the first reason.
void add_marks(tools::Table& table, const Results& results, Style style) {
  const std::vector<Reason> reasons = reasons_of(results);
  if (reasons.empty()) return;
  table.columns.push_back({});
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    for (const std::size_t cell : reasons[i].cells)
      table.rows[cell].push_back({fmt::format("{} [{}]", reasons[i].measured ? style.fail() : style.not_run(), i + 1),
                                  results.cells[cell].invalid.empty() ? Tone::faint : Tone::bad});
  }
}

tools::Note last_note(const Results& results) {
  const Summary summary = summary_of(results);
  std::string text = fmt::format("{}; {}", tools::in_words(results.run.seconds), verification_text(summary));
  const std::string stop = stop_text(summary);
  if (!stop.empty()) text += "; " + stop;
  if (summary.invalid > 0) text += fmt::format("; {} invalid", tools::counted(summary.invalid, "row"));
  const bool good = summary.measured == summary.rows && summary.invalid == 0 && summary.verified == summary.to_verify &&
                    results.ended_early.empty();
  return {std::move(text), good ? Tone::good : Tone::attention};
}

using tools::Tone;

void add_fact(tools::Part& part, std::string name, std::string value) {
  if (!value.empty()) part.facts.push_back({std::move(name), std::move(value)});
}

std::string remark_of(const Cell& cell) {
  if (!cell.invalid.empty())
    return "✘ invalid: " + cell.invalid + (cell.check.first.empty() ? "" : "; first: " + cell.check.first);
  if (!cell.note.empty()) return "– not measured: " + cell.note;
  return cell.bound.how.empty() ? "" : "bound: " + cell.bound.how;
}

tools::Part rows_part(const Results& results) {
  tools::Table table = table_of(results, page_columns(results));
  table.about = "Times are those of the slowest rank; bandwidths are in GB/s (1e9 bytes) and follow from the median.";
  table.columns.push_back({"remark"});
  for (std::size_t i = 0; i < results.cells.size(); ++i) {
    const Cell& cell = results.cells[i];
    tools::TextRow& row = table.rows[i];
    row.push_back({remark_of(cell)});
    const Tone tone = !cell.invalid.empty() ? Tone::bad : cell.note.empty() ? Tone::plain : Tone::faint;
    for (tools::TextCell& text : row) text.tone = tone;
    if (tone == Tone::bad) row.front().text.insert(0, "✘ ");  // not by colour alone
  }
  return {.title = "All rows", .tables = {std::move(table)}};
}

std::string rate_text(double seconds_per_byte) {
  return seconds_per_byte > 0 ? bandwidth_text(1 / seconds_per_byte) : "-";
}

tools::Part machine_part(const Machine& machine) {
  tools::Part part{.title = "Machine"};
  const std::pair<const char*, double> times[] = {
      {"Hand-over between ranks, through a cache line", machine.hand_over_seconds},
      {"Wake-up of a sleeping rank", machine.wake_up_seconds},
      {"Switch between ranks on one core", machine.switch_seconds}};
  for (const auto& [name, seconds] : times) add_fact(part, name, seconds > 0 ? time_text(seconds) : "");
  tools::Table levels{.title = "Memory bandwidth by what one rank works on",
                      .about = "Bytes read plus bytes written.",
                      .columns = {{"working set"}}};
  for (const char* name : {"one rank", "all ranks together", "best seen"})
    levels.columns.push_back({.name = name, .number = true, .unit = "GB/s"});
  for (const Machine::Level& level : machine.levels)
    levels.rows.push_back({{size_text(level.bytes)},
                           {bandwidth_text(level.alone)},
                           {bandwidth_text(level.together)},
                           {bandwidth_text(level.best)}});
  tools::Table fits{.title = "The cost model's parameters",
                    .about = "Fitted to messages of the backend and to the reduction kernel.",
                    .columns = {{"backend"}, {.name = "α", .number = true, .unit = "per message"}}};
  for (const char* name : {"1/β", "1/γ", "1/copy"})
    fits.columns.push_back({.name = name, .number = true, .unit = "GB/s"});
  for (const Machine::Fit& fit : machine.fits) {
    fits.rows.push_back(
        {{fit.backend}, {time_text(fit.alpha)}, {rate_text(fit.beta)}, {rate_text(fit.gamma)}, {rate_text(fit.copy)}});
    std::vector<std::string> messages;
    for (const Machine::Fit::Message& message : fit.best)
      messages.push_back(fmt::format("{}: {}", size_text(message.bytes), time_text(message.seconds)));
    add_fact(part, "Best messages between nodes, over " + fit.backend, fmt::format("{}", fmt::join(messages, ", ")));
  }
  if (part.facts.empty() && levels.rows.empty() && fits.rows.empty())
    part.lead.push_back({"It was not measured.", Tone::faint});
  part.tables = {std::move(levels), std::move(fits)};
  return part;
}

tools::Part run_part(const Results& results) {
  const RunFacts& run = results.run;
  std::vector<std::string> environment;
  for (const auto& [name, value] : run.environment) environment.push_back(fmt::format("{}={}", name, value));
  tools::Part part{.title = "Run"};
  add_fact(part, "Rows", shared_text(results));
  add_fact(part, "Processor", run.cpu);
  add_fact(part, "Kernel", run.kernel);
  add_fact(part, "Frequency governor", run.governor);
  add_fact(part, "Started", run.started);
  add_fact(part, "Took", tools::in_words(run.seconds));
  add_fact(part, "Ranks started by", run.launcher);
  add_fact(part, "Interval wanted", run.target_interval > 0 ? "±" + percent_text(run.target_interval) + " %" : "");
  add_fact(part, "Environment", fmt::format("{}", fmt::join(environment, " ")));
  return part;
}

}  // namespace

// The rows as a table, for terminals and spreadsheets.

std::vector<tools::Note> notes_of(const Results& results) {
  std::vector<tools::Note> notes;
  for (const auto& [text, measured, cells] : reasons_of(results))
    notes.push_back({fmt::format("[{}] {} {}: {}", notes.size() + 1, tools::counted(cells.size(), "row"),
                                 measured ? "invalid" : "not measured", text),
                     measured ? Tone::bad : Tone::plain});
  for (const std::string& warning : results.warnings) notes.push_back({warning, Tone::attention});
  if (!results.ended_early.empty()) notes.push_back({"ended early: " + results.ended_early, Tone::bad});
  notes.push_back(last_note(results));
  return notes;
}

std::string table_report(const Results& results, Style style, bool legend) {
  constexpr std::size_t kMark = 2;  // "# "
  tools::Part part{.lead = {{run_text(results)}}, .notes = notes_of(results)};
  for (const std::string& line : {machine_text(results.machine, style.columns - kMark), shared_text(results)}) {
    if (!line.empty()) part.lead.push_back({line, Tone::faint});
  }
  tools::Table& table = part.tables.emplace_back(table_of(results, terminal_columns(results, style)));
  add_marks(table, results, style);
  table.legend = legend;
  table.elsewhere = "--json, --csv and --html have them";
  return report_text(part, style);
}

std::string csv_results(const Results& results) {
  const std::vector<Column> columns = csv_columns();
  tools::Table table;
  for (const Column& column : columns) table.columns.push_back({std::string(column.csv.name)});
  for (const Cell& cell : results.cells) {
    const Row row{cell, statistics_of(cell)};
    tools::TextRow& texts = table.rows.emplace_back();
    for (const Column& column : columns) texts.push_back({column.in_csv(row)});
  }
  return csv_table(table);
}

tools::Report report_of(const Results& results, const tools::Part& own) {
  const Findings findings = findings_of(results);
  tools::Report report{.tool = "colbench",
                       .verdict = {findings.headline, findings.tone},
                       .head = {.title = findings.subject, .lead = {{run_text(results), Tone::faint}}},
                       .data_name = "colbench-results",
                       .data = json_results(results)};
  for (const std::string& sentence : findings.sentences) report.head.notes.push_back({sentence});
  for (const std::string& warning : results.warnings) report.head.notes.push_back({warning, Tone::attention});
  if (!own.title.empty()) report.parts.push_back(own);
  tools::Part figures = figures_of(results);
  figures.notes.pop_back();  // where it was measured: the page begins with it
  if (!figures.figures.empty()) report.parts.push_back(std::move(figures));
  report.parts.push_back(rows_part(results));
  report.parts.push_back(machine_part(results.machine));
  report.parts.push_back(run_part(results));
  report.parts.push_back({.title = "Repeat it",
                          .command = tools::shell_line(results.run.command),
                          .notes = {{"All samples are in this page, as --json writes them, in the element "
                                     "colbench-results."}}});
  return report;
}

}  // namespace col::colbench
