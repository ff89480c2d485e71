// Percentages on a command line.
#pragma once

#include <string>

namespace col::colbench {

// "3%", "0.5%": 0.03, 0.005. From 0% to 1000%. Throws UsageError that names the option.
double parse_percent(const std::string& option, const std::string& text);

}  // namespace col::colbench
