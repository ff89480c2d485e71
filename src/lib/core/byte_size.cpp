#include "core/byte_size.hpp"

#include <charconv>
#include <limits>
#include <system_error>

#include <fmt/format.h>

namespace col::core {
namespace {

constexpr std::string_view kUnits = "KMGT";

}  // namespace

std::optional<std::size_t> parse_bytes(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  std::size_t shift = 0;
  const char last = text.back() >= 'a' && text.back() <= 'z' ? static_cast<char>(text.back() - 'a' + 'A') : text.back();
  if (const std::size_t unit = kUnits.find(last); unit != std::string_view::npos) {
    shift = 10 * (unit + 1);
    text.remove_suffix(1);
  }
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number > std::numeric_limits<std::size_t>::max() >> shift) return std::nullopt;
  return number << shift;
}

std::string format_bytes(std::size_t bytes) {
  std::size_t units = 0;
  while (bytes > 0 && bytes % 1024 == 0 && units < kUnits.size()) {
    bytes /= 1024;
    ++units;
  }
  return units == 0 ? fmt::format("{}", bytes) : fmt::format("{}{}", bytes, kUnits[units - 1]);
}

}  // namespace col::core
