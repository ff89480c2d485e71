// Parses option values: lists, ranges, durations, seeds. All functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/types.hpp>

namespace col::tools {

inline constexpr int kMaxRanks = 64;

// The parts of `text` between separators, at least one, each of which may be empty.
std::vector<std::string_view> split(std::string_view text, char separator);

// The parts between commas, without duplicates. Nothing if a part is empty.
std::optional<std::vector<std::string>> parse_list(std::string_view text);

// "1-9,16": numbers and ranges in [least, most]. The result is ascending, without duplicates. Nothing if it is anything
// else.
std::optional<std::vector<int>> parse_numbers(std::string_view text, int least, int most);
inline std::optional<std::vector<int>> parse_ranks(std::string_view text) {
  return parse_numbers(text, 1, kMaxRanks);
}

// "20us", "500ms", "90s", "10m", "1h": a whole number and its unit, up to 720h; nothing when it is anything else.
std::optional<Duration> parse_duration(std::string_view text);

// "42", "0x2a"; nothing when it is anything else, or needs more than 64 bits.
std::optional<std::uint64_t> parse_seed(std::string_view text);

}  // namespace col::tools
