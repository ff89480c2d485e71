#include "colbench/report/csv.hpp"

#include <string_view>
#include <vector>

#include "colbench/report/columns.hpp"

namespace col::colbench {
namespace {

std::string quoted(std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(field);
  std::string text = "\"";
  for (const char letter : field) {
    if (letter == '"') text += '"';
    text += letter;
  }
  return text + '"';
}

}  // namespace

std::string csv_results(const Results& results) {
  const std::vector<Column> columns = csv_columns();
  std::string text;
  const auto add_line = [&](const auto& field_of) {
    for (const Column& column : columns) {
      if (&column != &columns.front()) text += ',';
      text += quoted(field_of(column));
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
