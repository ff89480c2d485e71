#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/report.hpp"
#include "common/text.hpp"

namespace col::tools {
namespace {

constexpr std::size_t kLeastText = 8;  // columns that a text keeps when it is cut

// A table's columns, and how they get narrower. All of it pure.
class Layout {
 public:
  Layout(const Table& table, Style style) : columns_(table.columns), rows_(1), style_(style) {
    for (const TableColumn& column : columns_) rows_[0].push_back({column.heading()});
    rows_.insert(rows_.end(), table.rows.begin(), table.rows.end());
    for (TextRow& row : rows_) {
      for (TextCell& cell : row) cell.text = one_line(cell.text, !style.utf8);
    }
    shown_.assign(columns_.size(), true);
    measure();
  }

  // Returns the names of the columns that went.
  std::vector<std::string> fit(std::size_t room) {
    std::vector<std::string> gone;
    if (width() > room) gap_ = 1;
    if (width() > room) join_units();
    while (least_width() > room) {
      std::size_t first = 0;
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (goes(i) > goes(first)) first = i;
      }
      if (goes(first) == 0) break;
      shown_[first] = false;
      gone.push_back(columns_[first].name);
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (shown_[i] && columns_[i].least > 0) shrink(i, columns_[i].least, room);
    }
    if (width() > room) {
      std::size_t widest = 0;
      for (std::size_t i = 0; i < widths_.size(); ++i) {
        if (shown_[i] && widths_[i] > widths_[widest]) widest = i;
      }
      shrink(widest, kLeastText, room);
    }
    return gone;
  }

  std::size_t width() const {
    std::size_t sum = 0, count = 0;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      if (!shown_[i]) continue;
      sum += widths_[i];
      ++count;
    }
    return sum + (count > 0 ? gap_ * (count - 1) : 0);
  }

  std::string lines() const {
    std::string text = line(rows_[0]) + "\n";
    for (std::size_t i = 0; i < width(); ++i) text += style_.rule();
    text += '\n';
    for (std::size_t i = 1; i < rows_.size(); ++i) text += line(rows_[i]) + "\n";
    return text;
  }

  bool shows(std::size_t column) const { return shown_[column]; }

 private:
  std::size_t least_width() const {
    std::size_t least = width();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (shown_[i] && columns_[i].least > 0) least -= widths_[i] - std::min(widths_[i], columns_[i].least);
    }
    return least;
  }

  void shrink(std::size_t column, std::size_t least, std::size_t room) {
    const std::size_t over = width() - std::min(width(), room);
    widths_[column] = std::max(std::min(widths_[column], least), widths_[column] - std::min(widths_[column], over));
  }

  std::uint8_t goes(std::size_t column) const { return shown_[column] ? columns_[column].goes : 0; }

  void measure() {
    widths_.assign(columns_.size(), 0);
    for (const TextRow& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], columns_of(row[i].text));
    }
  }

  // "1.23 us" becomes "1.23us".
  void join_units() {
    for (std::size_t row = 1; row < rows_.size(); ++row) {
      for (std::size_t i = 0; i < rows_[row].size(); ++i) {
        if (columns_[i].number) std::erase(rows_[row][i].text, ' ');
      }
    }
    measure();
  }

  std::string line(const TextRow& cells) const {
    std::string line;
    std::size_t missing = 0;  // spaces before the next cell that has text
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!shown_[i]) continue;
      const std::string text = fitted(cells[i].text, widths_[i], style_);
      const std::size_t rest = widths_[i] - columns_of(text);
      if (columns_[i].number) missing += rest;
      if (!text.empty()) line += std::string(std::exchange(missing, 0), ' ') + toned(text, cells[i].tone, style_);
      missing += gap_ + (columns_[i].number ? 0 : rest);
    }
    return line;
  }

  const std::vector<TableColumn>& columns_;
  TextRows rows_;
  Style style_;
  std::vector<std::size_t> widths_;
  std::vector<bool> shown_;
  std::size_t gap_ = 2;
};

// `mark`, and behind it a sentence, whose further lines begin below the end of `head`, if it has one.
std::string sentence(std::string_view mark, std::string_view head, const Note& note, Style style) {
  std::string text = fmt::format("{}{}", mark, head);
  const std::string words = one_line(note.text, !style.utf8);
  constexpr std::size_t kIndent = 2;
  const std::size_t used = columns_of(text);
  text += style.wraps ? wrapped(words, style.columns, used, head.empty() ? kIndent : used) : words;
  return toned(text, note.tone, style) + "\n";
}

std::string legend(const Table& table, const Layout& layout, Style style, std::string_view mark) {
  std::size_t width = 0;
  for (const TableColumn& column : table.columns) width = std::max(width, columns_of(column.name));
  std::string text;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const TableColumn& column = table.columns[i];
    if (!layout.shows(i) || column.meaning.empty()) continue;
    const std::string name = column.name + std::string(width + 2 - columns_of(column.name), ' ');
    text += sentence(mark, name, {column.meaning, Tone::faint}, style);
  }
  return text;
}

// Columns and rows, with a rule below the names. Lines have no spaces at their ends, and at most `style.columns`
// columns: for that, gaps become narrower, numbers join their units, columns go, which a last line names (unless
// nothing is `elsewhere`), and texts are cut, at last those of the widest column.
std::string table_text(const Table& table, Style style, std::string_view mark) {
  Layout layout(table, style);
  std::vector<std::string> gone;
  if (style.columns > 0) gone = layout.fit(style.columns);
  std::string text = layout.lines();
  if (table.legend) text += legend(table, layout, style, mark);
  if (gone.empty() || table.elsewhere.empty()) return text;
  const std::string words = fmt::format("no room here for {}: {}", fmt::join(gone, ", "), table.elsewhere);
  return text + sentence(mark, "", {words, Tone::faint}, style);
}

}  // namespace

std::string report_text(const Part& part, Style style, std::string_view mark) {
  std::string text = part.title.empty() ? "" : one_line(part.title, !style.utf8) + "\n";
  const auto add = [&](const std::vector<Note>& notes) {
    for (const Note& note : notes) text += sentence(mark, "", note, style);
  };
  add(part.lead);
  for (const Table& table : part.tables) {
    if (&table != &part.tables.front()) text += "\n";
    if (!table.title.empty()) text += table.title + "\n";
    if (!table.rows.empty()) text += table_text(table, style, mark);
    add(table.notes);
  }
  add(part.notes);
  return text;
}

}  // namespace col::tools
