// What debuggers print, cut down to what a reader of a report wants. All of it pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// The threads and frames in the output of `gdb` or `eu-stack`, without what else they say, without addresses where a
// frame has a name, and at most `most_lines`; empty when there is no frame in it.
std::vector<std::string> trim_stack(std::string_view output, std::size_t most_lines);

// The lines in one text, without what differs between processes that do the same: addresses, numbers of threads.
std::string stack_key(const std::vector<std::string>& lines);

}  // namespace col::launch
