#include <fmt/format.h>

#include "common/report.hpp"
#include "common/text.hpp"

namespace col::tools {

std::string report_text(const Part& part, Style style, std::string_view mark) {
  std::string text = part.title.empty() ? "" : part.title + "\n";
  const auto add = [&](const std::vector<Note>& notes) {
    for (const Note& note : notes)
      text += toned(fmt::format("{}{}", mark, one_line(note.text, !style.utf8)), note.tone, style) + "\n";
  };
  add(part.lead);
  for (const Table& table : part.tables) {
    if (&table != &part.tables.front()) text += "\n";
    if (!table.title.empty()) text += table.title + "\n";
    if (!table.rows.empty()) text += render_table(table, style, mark);
    add(table.notes);
  }
  add(part.notes);
  return text;
}

}  // namespace col::tools
