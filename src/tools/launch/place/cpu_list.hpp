// Lists of processors in the kernel's notation: "0-3,8".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

inline constexpr int kMaxCpus = 65536;  // more than any kernel can number

// Ascending, without duplicates. Nothing if `text` is not such a list, or empty. White space at its end is ignored.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// Requires: ascending. Empty for no processors.
std::string cpu_list_text(std::span<const int> cpus);

}  // namespace col::launch
