// The rows as a table, for terminals and spreadsheets.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "colbench/report/columns.hpp"
#include "colbench/report/reports.hpp"
#include "colbench/report/summary.hpp"
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

}  // namespace

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

}  // namespace col::colbench
