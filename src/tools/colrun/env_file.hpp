// Variables from a file of lines NAME=value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace col::colrun {

// "NAME=value" for each line, in their order. A line may begin with "export "; a value may stand in quotes; nothing is
// expanded. `path` is for messages. Throws UsageError, which names the line.
std::vector<std::string> parse_env_file(std::string_view text, const std::string& path);

}  // namespace col::colrun
