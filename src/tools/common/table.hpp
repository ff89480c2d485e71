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

// A rule stands below the first row. Rows may be shorter than others. No spaces at the ends of lines.
std::string render_table(const std::vector<std::vector<TextCell>>& rows, Style style);

}  // namespace col::tools
