// Reads files of the kernel in /proc and /sys.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.hpp"

namespace col::launch {

// The whole file; nothing if it cannot be read. The size of such files cannot be asked for before.
std::optional<std::string> read_small_file(const std::string& path);

// The whole number at the begin of a file; nothing if there is no such file or no number ("max").
std::optional<long long> read_number(const std::string& path);

// What a directory holds, in no order; nothing if it cannot be read.
std::optional<std::vector<std::string>> names_in(const std::string& directory);

// The text after "name:" on its own line; empty if there is no such line.
std::string_view field(std::string_view text, std::string_view name);

using tools::take, tools::trimmed;

}  // namespace col::launch
