
#include "colbench/report/reports.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/columns.hpp"
#include "colbench/report/summary.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

using tools::Style;
using tools::Tone;

// The cells of a table as texts; the mark of a row, which may be empty, stands after its last column. All of it pure.
class Grid {
 public:
  Grid(std::vector<Column> columns, const std::vector<Row>& rows, std::vector<std::string> marks, bool ascii)
      : columns_(std::move(columns)), marks_(std::move(marks)) {
    for (const Column& column : columns_) {
      std::vector<std::string>& texts = texts_.emplace_back();
      for (const Row& row : rows) texts.push_back(tools::clean(column.in_table(row), ascii));
    }
  }

  // Makes lines at most `columns` wide: a narrower gap, then no space before units, then fewer columns. What names a
  // row stays, even when that is too wide. Returns the names of the columns that went.
  std::vector<std::string_view> fit(std::size_t columns) {
    std::vector<std::string_view> gone;
    if (width() > columns) gap_ = 1;
    if (width() > columns) join_units();
    while (width() > columns) {
      const auto least = std::min_element(columns_.begin(), columns_.end(),
                                          [](const Column& a, const Column& b) { return a.rank < b.rank; });
      if (least == columns_.end() || least->rank >= kNeverGoes) break;
      gone.push_back(least->table.name);
      texts_.erase(texts_.begin() + (least - columns_.begin()));
      columns_.erase(least);
    }
    return gone;
  }

  const std::vector<Column>& columns() const { return columns_; }
  std::string head() const {
    return join([this](std::size_t i) { return columns_[i].table.name; });
  }

  std::string line(std::size_t row) const {
    return join([this, row](std::size_t i) -> std::string_view { return texts_[i][row]; });
  }

  std::size_t width() const {
    std::size_t mark = 0;
    for (const std::string& text : marks_) mark = std::max(mark, tools::columns_of(text));
    std::size_t sum = mark + (mark > 0 ? gap_ : 0);
    for (std::size_t i = 0; i < columns_.size(); ++i) sum += width_of(i) + (i > 0 ? gap_ : 0);
    return sum;
  }

  std::size_t gap() const { return gap_; }

 private:
  std::size_t width_of(std::size_t column) const {
    std::size_t width = tools::columns_of(columns_[column].table.name);
    for (const std::string& text : texts_[column]) width = std::max(width, tools::columns_of(text));
    return width;
  }

  std::string join(const std::function<std::string_view(std::size_t)>& text) const {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line.append(gap_, ' ');
      const std::size_t missing = width_of(i) - tools::columns_of(text(i));
      const bool left = columns_[i].left_aligned();
      if (!left) line.append(missing, ' ');
      line += text(i);
      if (left) line.append(missing, ' ');
    }
    return line;
  }

  void join_units() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].facet) continue;
      for (std::string& text : texts_[i]) std::erase(text, ' ');
    }
  }

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> texts_;  // by column, then by row
  std::vector<std::string> marks_;
  std::size_t gap_ = 2;
};

// ---- The report -----------------------------------------------------------------------------------------------------

std::string note_line(std::string_view text, Tone tone, Style style) {
  return tools::toned("# " + tools::one_line(text, !style.utf8), tone, style) + "\n";
}

// "✘ [1]" beside every row that has the first reason.
std::vector<std::string> marks_of(const Results& results, const std::vector<Reason>& reasons, Style style) {
  std::vector<std::string> marks(results.cells.size());
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    for (const std::size_t cell : reasons[i].cells) {
      marks[cell] = fmt::format("{} [{}]", reasons[i].measured ? style.fail() : style.not_run(), i + 1);
    }
  }

  return marks;
}

std::string head_lines(const Results& results, Style style, std::size_t columns) {
  constexpr std::size_t kMark = 2;  // "# "
  std::string text = note_line(run_text(results), Tone::plain, style);
  for (const std::string& line : {machine_text(results.machine, columns - kMark), shared_text(results)}) {
    if (!line.empty()) text += note_line(line, Tone::faint, style);
  }

  return text;
}

std::string table_lines(const Results& results, const Grid& grid, const std::vector<std::string>& marks, Style style) {
  std::string text = grid.head() + "\n";
  for (std::size_t i = 0; i < grid.width(); ++i) text += style.rule();
  text += '\n';
  for (std::size_t row = 0; row < results.cells.size(); ++row) {
    std::string line = grid.line(row);
    if (!marks[row].empty()) {
      const Tone tone = results.cells[row].invalid.empty() ? Tone::faint : Tone::bad;
      line += std::string(grid.gap(), ' ') + tools::toned(marks[row], tone, style);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }

  return text;
}

std::string reason_lines(const std::vector<Reason>& reasons, Style style) {
  std::string text;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const Reason& reason = reasons[i];
    text += note_line(fmt::format("[{}] {} {}: {}", i + 1, tools::counted(reason.cells.size(), "row"),
                                  reason.measured ? "invalid" : "not measured", reason.text),
                      reason.measured ? Tone::bad : Tone::plain, style);
  }

  return text;
}

std::string legend_lines(const std::vector<Column>& columns, Style style) {
  std::size_t width = 0;
  for (const Column& column : columns) width = std::max(width, tools::columns_of(column.table.name));
  std::string text;
  for (const Column& column : columns) {
    const std::string space(
        width > tools::columns_of(column.table.name) ? width - tools::columns_of(column.table.name) : 0, ' ');
    text +=
        tools::toned(fmt::format("# {}{}  {}", column.table.name, space, column.meaning), Tone::faint, style) + "\n";
  }

  return text;
}

std::string last_line(const Results& results, Style style) {
  const Summary summary = summary_of(results);
  std::string text = fmt::format("{}; {}", tools::in_words(results.run.seconds), verification_text(summary));
  const std::string stop = stop_text(summary);
  if (!stop.empty()) text += "; " + stop;
  if (summary.invalid > 0) text += fmt::format("; {} invalid", tools::counted(summary.invalid, "row"));
  const bool good = summary.measured == summary.rows && summary.invalid == 0 && summary.verified == summary.to_verify &&
                    results.ended_early.empty();
  return note_line(text, good ? Tone::good : Tone::attention, style);
}

std::string csv_field(std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(field);
  std::string text = "\"";
  for (const char letter : field) {
    if (letter == '"') text += '"';
    text += letter;
  }

  return text + '"';
}

}  // namespace

std::string table_report(const Results& results, Style style, bool legend, std::size_t columns) {
  std::vector<Row> rows;
  for (const Cell& cell : results.cells) rows.push_back({cell, statistics_of(cell)});
  const std::vector<Reason> reasons = reasons_of(results);
  const std::vector<std::string> marks = marks_of(results, reasons, style);
  Grid grid(terminal_columns(results, style), rows, marks, !style.utf8);
  const std::vector<std::string_view> gone = grid.fit(columns);

  std::string text = head_lines(results, style, columns);
  if (!rows.empty()) text += table_lines(results, grid, marks, style);
  if (legend) text += legend_lines(grid.columns(), style);
  if (!gone.empty()) {
    text += note_line(fmt::format("no room here for {}: --json, --csv and --html have them", fmt::join(gone, ", ")),
                      Tone::faint, style);
  }

  text += reason_lines(reasons, style);
  for (const std::string& warning : results.warnings) text += note_line(warning, Tone::attention, style);
  if (!results.ended_early.empty()) text += note_line("ended early: " + results.ended_early, Tone::bad, style);
  return text + last_line(results, style);
}

// ---- CSV ------------------------------------------------------------------------------------------------------------

std::string csv_results(const Results& results) {
  const std::vector<Column> columns = csv_columns();
  std::string text;
  const auto add_line = [&](const auto& field_of) {
    for (const Column& column : columns) {
      if (&column != &columns.front()) text += ',';
      text += csv_field(field_of(column));
    }
    text += "\r\n";
  };
  add_line([](const Column& column) { return column.csv.name; });
  for (const Cell& cell : results.cells) {
    const Row row{cell, statistics_of(cell)};
    add_line([&](const Column& column) { return column.in_csv(row); });
  }

  return text;
}

}  // namespace col::colbench
