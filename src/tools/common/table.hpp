// Tables for the terminal: columns as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

#include "common/style.hpp"

namespace col::tools {

struct TextCell {
  std::string text;  // clean, one line
  Tone tone = Tone::plain;
};

// There is a rule below the first row. Rows may be shorter than others. Lines have no spaces at their ends.
std::string render_table(const std::vector<std::vector<TextCell>>& rows, Style style);

}  // namespace col::tools
