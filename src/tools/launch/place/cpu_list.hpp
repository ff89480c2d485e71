// Lists of processors as the kernel writes them: "0-3,8".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

inline constexpr int kMaxCpus = 65536;  // more than any kernel can number

// Ascending, no two equal. Nothing when `text` is no such list, or empty; white space at its end does not matter.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// Requires: ascending. Empty for no processors.
std::string cpu_list_text(std::span<const int> cpus);

}  // namespace col::launch
