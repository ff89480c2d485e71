// The columns of colbench's table: what each says of a row, and what that means. All of it pure.
#pragma once

#include <string>
#include <vector>

#include "colbench/report/facets.hpp"
#include "colbench/results.hpp"
#include "common/style.hpp"

namespace col::colbench {

struct Row {
  const Cell& cell;
  CellStatistics statistics;
};

struct Column {
  std::string name;     // "t50"
  std::string meaning;  // in one line
  // When there is no room, the column of the least rank goes first.
  int rank = 0;
  std::string (*value)(const Row&) = nullptr;  // clean text; "-" for nothing
  Facet facet = Facet::operation;              // whose value it is when there is no `value`

  std::string text(const Row& row) const { return value != nullptr ? value(row) : value_of(row.cell, facet); }
  bool left_aligned() const { return value == nullptr && facet != Facet::ranks && facet != Facet::size; }
};
inline constexpr int kNeverGoes = 100;

// What names a row: operation, algorithm and size, and whatever else differs between rows.
std::vector<Column> identity_columns(const Results& results);
// What was measured: with the times of GPUs where there are buffers on any.
std::vector<Column> value_columns(const Results& results, tools::Style style);
// What fits no terminal: for reports that have more room.
std::vector<Column> further_columns();

}  // namespace col::colbench
