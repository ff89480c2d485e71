// Reading what the kernel says in /proc and /sys.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace col::launch {

// The whole file; nothing when it cannot be read. Such files have no size that could be asked for beforehand.
std::optional<std::string> read_small_file(const std::string& path);

// The whole number that a file begins with; nothing when there is no such file or no number ("max").
std::optional<long long> read_number(const std::string& path);

// Cuts `text` behind the first `separator` and returns what was before it.
std::string_view take(std::string_view& text, char separator);

}  // namespace col::launch
