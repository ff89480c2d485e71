// Variables from a file of lines NAME=value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace col::colrun {

// "NAME=value" for each line, in order. A line may begin with "export ". A value may be in quotes. Nothing is expanded.
// `path` is for messages. Throws UsageError that names the line.
std::vector<std::string> parse_env_file(std::string_view text, const std::string& path);

}  // namespace col::colrun
