// What reports say of a row: one table of columns, which the terminal's table, the page, CSV and JSON all walk. All of
// it pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "colbench/cell/results.hpp"
#include "colbench/report/facets.hpp"
#include "common/table.hpp"

namespace col::colbench {

struct Row {
  const Cell& cell;
  CellStatistics statistics;
};

inline constexpr int kNeverGoes = 100;
inline constexpr int kPageOnly = 0;  // too much for a terminal

struct Column {
  enum class Kind : std::uint8_t { count, number, time, part, rate };
  using Text = std::string (*)(const Row&);
  using Value = std::optional<double> (*)(const Row&);
  // What it is called in one form of report; no name: it is not there.
  struct Name {
    Name(const char* name_ = "", const char* after_ = "") : name(name_), after(after_) {}
    std::string_view name;
    std::string_view after;  // behind which column it stands, where that is not the one above it
  };

  Column(Name table_, std::string_view meaning_, Facet facet_, Name csv_, Text csv_text_ = nullptr)
      : table(table_), meaning(meaning_), facet(facet_), csv(csv_), csv_text(csv_text_) {}
  Column(Name table_, std::string_view meaning_, int rank_, Kind kind_, Value value_, Name csv_, Name json_ = {},
         Text text_ = nullptr)
      : table(table_),
        meaning(meaning_),
        rank(rank_),
        kind(kind_),
        value(value_),
        text(text_),
        csv(csv_),
        json(json_) {}
  Column(Name table_, std::string_view meaning_, int rank_, Text text_)
      : table(table_), meaning(meaning_), rank(rank_), text(text_) {}
  Column(Name csv_, Text csv_text_) : csv(csv_), csv_text(csv_text_) {}

  Name table = {};                // "t50"
  std::string_view meaning = {};  // in one line
  int rank = kNeverGoes;          // when there is no room, the column of the least rank goes first
  std::optional<Facet> facet = {};
  // When it is no facet: seconds, a fraction or bytes per second, as `kind` says; nothing when it does not apply.
  Kind kind = Kind::number;
  Value value = nullptr;
  Text text = nullptr;  // in tables, where that differs from what follows from `kind`
  Name csv = {};
  Text csv_text = nullptr;  // where that differs
  Name json = {};           // in "stats"

  std::string in_table(const Row& row) const;  // clean text; "-" for nothing
  std::string in_csv(const Row& row) const;    // not yet quoted; empty for nothing
  bool left_aligned() const { return facet && facet != Facet::ranks && facet != Facet::size; }
};

// What names a row (operation, algorithm and size, and whatever else differs between rows), then what was measured:
// with the times of GPUs where there are buffers on any. A page has room for more columns than a terminal.
std::vector<Column> terminal_columns(const Results& results, tools::Style style);
std::vector<Column> page_columns(const Results& results);

// All rows as a table of these columns.
tools::Table table_of(const Results& results, const std::vector<Column>& columns);

std::vector<Column> csv_columns();
const std::vector<Column>& json_columns();

}  // namespace col::colbench
