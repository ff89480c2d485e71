#include "common/noted_table.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::tools {
namespace {

// "1.23 us", "12%", "~3.20x", "-": what a reader compares digit by digit.
bool is_number(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  return text == "-" || text.empty() || (digit != std::string_view::npos && digit <= 1);
}

// The table itself.
std::string table_element(const TextRows& rows) {
  std::vector<std::string_view> classes;
  for (std::size_t i = 0; i < rows.front().size(); ++i) {
    const bool numbers = std::all_of(rows.begin() + 1, rows.end(),
                                     [i](const auto& row) { return i >= row.size() || is_number(row[i].text); });
    classes.emplace_back(numbers ? " class=\"number\"" : "");
  }
  std::string text = "<div class=\"wide\"><table>\n";
  for (const auto& row : rows) {
    const bool is_head = &row == &rows.front();
    text += is_head ? "<thead><tr>" : "<tr>";
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const std::string cell = i < row.size() ? markup(row[i].text) : "";
      text += is_head ? fmt::format("<th scope=\"col\"{}>{}</th>", classes[i], cell)
                      : fmt::format("<td{}>{}</td>", classes[i], cell);
    }
    text += is_head ? "</tr></thead>\n<tbody>\n" : "</tr>\n";
  }
  return text + "</tbody>\n</table></div>\n";
}

}  // namespace

std::string render_noted(const NotedTable& table, Style style, std::string_view mark) {
  std::string text = table.title.empty() ? "" : table.title + "\n";
  if (table.rows.size() > 1) text += render_table(table.rows, style);
  for (const std::string& note : table.notes) text += fmt::format("{}{}\n", mark, clean(note, !style.utf8));
  return text;
}

std::string noted_section(const NotedTable& table) {
  std::string text = "<section>\n";
  if (!table.title.empty()) text += fmt::format("<h3>{}</h3>\n", markup(table.title));
  if (table.rows.size() > 1) text += table_element(table.rows);
  if (!table.notes.empty()) {
    text += "<ul class=\"notes\">\n";
    for (const std::string& note : table.notes) text += fmt::format("<li>{}</li>\n", markup(note));
    text += "</ul>\n";
  }
  return text + "</section>\n";
}

}  // namespace col::tools
