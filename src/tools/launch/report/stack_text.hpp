// Reduces the output of debuggers to what a reader of a report wants. All functions are pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// The threads and frames in the output of `gdb` or `eu-stack`, without other text, and without addresses for frames
// with a name. At most `most_lines`. Empty if there is no frame in it.
std::vector<std::string> trim_stack(std::string_view output, std::size_t most_lines);

// The lines as one text, without what differs between processes that do the same: addresses and thread numbers.
std::string stack_key(const std::vector<std::string>& lines);

}  // namespace col::launch
