#include "colbench/compare/percent.hpp"

#include <charconv>

#include <fmt/format.h>

#include "common/command_line.hpp"

namespace col::colbench {

double parse_percent(const std::string& option, const std::string& text) {
  double percent = -1;
  const char* last = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), last, percent, std::chars_format::fixed);
  const bool is_percent = error == std::errc() && last - stop == 1 && *stop == '%';
  if (!is_percent || !(percent >= 0 && percent <= 1000)) {
    throw tools::UsageError(fmt::format("{} '{}' is no percentage; write one such as 3%", option, text));
  }
  return percent / 100;
}

}  // namespace col::colbench
