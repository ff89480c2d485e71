#include "common/table.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"

namespace col::tools {
namespace {

constexpr std::size_t kLeastText = 8;  // columns that a text keeps when it is cut

// A table's columns, and how they get narrower. All of it pure.
class Columns {
 public:
  explicit Columns(const TextRows& rows) {
    for (const auto& row : rows) {
      widths_.resize(std::max(widths_.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], columns_of(row[i].text));
    }
    shown_.assign(widths_.size(), true);
  }

  // Returns the names of the columns that went.
  std::vector<std::string> fit(std::size_t room, const std::vector<TextCell>& head) {
    std::vector<std::string> gone;
    if (width() > room) gap_ = 1;
    while (width() > room) {
      std::size_t first = head.size();
      for (std::size_t i = 0; i < head.size(); ++i) {
        if (shown_[i] && head[i].goes > (first == head.size() ? 0 : head[first].goes)) first = i;
      }
      if (first == head.size()) break;
      shown_[first] = false;
      gone.push_back(head[first].text);
    }
    if (width() > room) {
      std::size_t widest = 0;
      for (std::size_t i = 0; i < widths_.size(); ++i) {
        if (shown_[i] && widths_[i] > widths_[widest]) widest = i;
      }
      const std::size_t over = width() - room;
      widths_[widest] =
          std::max(std::min(widths_[widest], kLeastText), widths_[widest] - std::min(widths_[widest], over));
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

  std::string line(const std::vector<TextCell>& cells, Style style) const {
    std::string line;
    std::size_t missing = 0;  // spaces before the next cell that has text
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!shown_[i]) continue;
      const std::string text = fitted(cells[i].text, widths_[i], style);
      if (!text.empty()) {
        line += std::string(missing, ' ') + toned(text, cells[i].tone, style);
        missing = 0;
      }
      missing += widths_[i] - columns_of(text) + gap_;
    }
    return line;
  }

 private:
  static std::string fitted(const std::string& text, std::size_t width, Style style) {
    if (columns_of(text) <= width) return text;
    return std::string(cut(text, width - columns_of(style.ellipsis()))) + std::string(style.ellipsis());
  }

  std::vector<std::size_t> widths_;
  std::vector<bool> shown_;
  std::size_t gap_ = 2;
};

}  // namespace

std::string render_table(const TextRows& rows, Style style) {
  if (rows.empty()) return {};
  Columns columns(rows);
  std::vector<std::string> gone;
  if (style.columns > 0) gone = columns.fit(style.columns, rows.front());
  std::string table;
  for (const auto& row : rows) {
    table += columns.line(row, style) + "\n";
    if (&row != &rows.front()) continue;
    for (std::size_t i = 0; i < columns.width(); ++i) table += style.rule();
    table += '\n';
  }
  if (!gone.empty())
    table += fmt::format("no room for: {} (a wider terminal, or a pipe, has them)\n", fmt::join(gone, ", "));
  return table;
}

}  // namespace col::tools
