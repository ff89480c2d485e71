// Text files that are read line by line: configuration, variables, hosts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace col::colrun {

// All of a file, or of a pipe such as a shell's `<(…)`. Throws UsageError when it cannot be read, is larger than 1 MiB,
// holds a NUL byte, or is a pipe that does not come to its end within 10 seconds.
std::string read_text(const std::string& path);

// Without spaces and tabs at both ends.
std::string_view trimmed(std::string_view text);

// Calls `use` with every line that is neither empty nor a comment (its first character is #), trimmed, and its number
// from 1.
void each_line(std::string_view text, const std::function<void(int number, std::string_view line)>& use);

// The content of a value that stands in quotes, and any other value as it is: in '…' every character stands for itself,
// in "…" there are \" \\ \n and \t. Nothing when a quote is not closed, or more follows it.
std::optional<std::string> unquoted(std::string_view text);

}  // namespace col::colrun
