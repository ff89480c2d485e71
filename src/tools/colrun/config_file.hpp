// Options from a file of lines "option = value".
#pragma once

#include <string>
#include <string_view>

#include "colrun/values.hpp"

namespace col::colrun {

// The names are the long ones, without dashes. The value of a flag is 1, 0, yes or no. A value may be in quotes. `path`
// is for messages. Throws UsageError that names the line.
Values parse_config(std::string_view text, const std::string& path);

// "1" or "0" for the value of a flag in a file or variable. Throws UsageError.
std::string flag_text(const Given& given);

}  // namespace col::colrun
