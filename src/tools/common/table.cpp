#include "common/table.hpp"

#include <algorithm>
#include <cstddef>

#include "common/text.hpp"

namespace col::tools {
namespace {

constexpr std::size_t kGap = 2;

}  // namespace

std::string render_table(const std::vector<std::vector<TextCell>>& rows, Style style) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i].text));
  }
  std::size_t total = widths.empty() ? 0 : kGap * (widths.size() - 1);
  for (const std::size_t width : widths) total += width;

  std::string table;
  for (std::size_t number = 0; number < rows.size(); ++number) {
    std::size_t missing = 0;  // spaces before the next cell that has text
    for (std::size_t i = 0; i < rows[number].size(); ++i) {
      const TextCell& cell = rows[number][i];
      if (!cell.text.empty()) {
        table += std::string(missing, ' ') + toned(cell.text, cell.tone, style);
        missing = 0;
      }
      missing += widths[i] - columns_of(cell.text) + kGap;
    }
    table += '\n';
    if (number > 0) continue;
    for (std::size_t i = 0; i < total; ++i) table += style.rule();
    table += '\n';
  }
  return table;
}

}  // namespace col::tools
