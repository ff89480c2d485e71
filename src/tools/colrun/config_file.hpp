// Options from a file of lines "option = value".
#pragma once

#include <string>
#include <string_view>

#include "colrun/values.hpp"

namespace col::colrun {

// The names are the long ones, without dashes; the value of a flag is 1, 0, yes or no; a value may stand in quotes.
// `path` is for messages. Throws UsageError, which names the line.
Values parse_config(std::string_view text, const std::string& path);

// A flag's "1" or "0" from what a file or a variable says. Throws UsageError.
std::string flag_text(const Given& given);

}  // namespace col::colrun
