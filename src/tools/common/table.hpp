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
  std::string text;  // any: terminals and pages show it harmless, and on one line
  Tone tone = Tone::plain;
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

}  // namespace col::tools
