// Numbers on a command line.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace col::tools {

// `text` as a whole number in [least, most]; nothing if it is anything else ("", "4x", "1.5", out of range).
template <typename Integer>
std::optional<Integer> parse_whole_number(std::string_view text, Integer least, Integer most) noexcept {
  Integer value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most) return std::nullopt;
  return value;
}

}  // namespace col::tools
