#include "common/report.hpp"

namespace col::tools {
namespace {

std::string field_of(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted.append(letter == '"' ? 2 : 1, letter);
  return quoted + '"';
}

}  // namespace

std::string csv_table(const Table& table) {
  TextRow head;
  for (const TableColumn& column : table.columns) head.push_back({column.name});
  std::string text;
  const auto add = [&text](const TextRow& row) {
    for (const TextCell& cell : row) text += (&cell == &row.front() ? "" : ",") + field_of(cell.text);
    text += "\r\n";
  };
  add(head);
  for (const TextRow& row : table.rows) add(row);
  return text;
}

}  // namespace col::tools
