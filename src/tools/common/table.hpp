// Tables: what the rows of a report say, and how a terminal has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/style.hpp"

namespace col::tools {

struct TextCell {
  std::string text;  // clean, one line
  Tone tone = Tone::plain;
  std::uint8_t goes = 0;  // in a row that names columns: as in TableColumn
};
using TextRow = std::vector<TextCell>;
using TextRows = std::vector<TextRow>;

struct TableColumn {
  std::string name;
  bool number = false;       // a reader compares its digits: they stand at the right
  std::uint8_t goes = 0;     // where there is no room, the column of the greatest number goes first; 0: it stays
  std::string unit = {};     // of all its cells
  std::string meaning = {};  // in one line
  std::size_t least = 0;     // what is left of longer texts before a column goes; 0: all
  std::string heading() const { return unit.empty() ? name : name + ", " + unit; }
};

// A sentence beside tables and charts.
struct Note {
  std::string text;
  Tone tone = Tone::plain;
};

struct Table {
  std::string title = {};
  std::string about = {};  // on a page: what else a reader must know before the rows
  std::vector<TableColumn> columns = {};
  TextRows rows = {};  // a row may be shorter than others
  std::vector<Note> notes = {};
  bool legend = false;  // on a terminal: says what its columns mean (a page always does)
  std::string elsewhere = "a wider terminal, or a pipe, has them";  // columns for which there is no room
};

// The columns and rows for a terminal, with a rule below the names. Lines have no spaces at their ends, and at most
// `style.columns` columns: for that, gaps become narrower, numbers join their units, columns go, which a last line
// names (unless nothing is `elsewhere`), and texts are cut, at last those of the widest column. `mark` stands before
// lines that are no rows.
std::string render_table(const Table& table, Style style, std::string_view mark = "");
// The same where the first row names the columns.
std::string render_table(const TextRows& rows, Style style);
// The lines of such a text, without their ends.
std::vector<std::string> lines_of(std::string_view text);

// As much of a text as so many columns have room for.
std::string fitted(std::string_view text, std::size_t columns, Style style);

}  // namespace col::tools
