// Tables for the terminal: columns as wide as their widest cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/style.hpp"

namespace col::tools {

struct TextCell {
  std::string text;  // clean, one line
  Tone tone = Tone::plain;
  // In the first row: where there is no room for all columns, that of the greatest number goes first. 0: it stays.
  std::uint8_t goes = 0;
};
using TextRows = std::vector<std::vector<TextCell>>;

// There is a rule below the first row. Rows may be shorter than others. Lines have no spaces at their ends, and at most
// `style.columns` columns: for that, gaps become narrower, columns go, which a last line names, and at last the texts
// of the widest column are cut.
std::string render_table(const TextRows& rows, Style style);

}  // namespace col::tools
