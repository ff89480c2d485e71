// Tables with words, which say the same on a terminal and on a page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/table.hpp"

namespace col::tools {

// A table with what is said above and below it.
struct NotedTable {
  std::string title = {};
  TextRows rows = {};                   // the first one names the columns
  std::vector<std::string> notes = {};  // clean lines
};

// Whole lines; `mark` stands before every note.
std::string render_noted(const NotedTable& table, Style style, std::string_view mark = "");
// A <section> of a page under a heading <h3>. Columns of numbers are right-aligned.
std::string noted_section(const NotedTable& table);

}  // namespace col::tools
